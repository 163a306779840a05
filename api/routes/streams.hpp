// Streams: answers that are made piece by piece: a watch, a log (lists: list_stream.hpp).
//
// Each is an object on the API's loop that writes a piece, waits until the client has taken it, and
// makes the next one then. So nothing queues up for a slow client: it is just further behind; one
// that takes nothing for a minute is cut.
#pragma once

#include "api/routes/backend.hpp"
#include "api/routes/exchange.hpp"
#include "api/view/render_cache.hpp"
#include "api/view/watch.hpp"

#include <kj/async-io.h>
#include <kj/timer.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// What all streams share; owned by the server.
class StreamContext {
 public:
  StreamContext(kj::Timer& timer, const View& view, Renderer& renderer)
      : timer(timer), view(view), renderer(renderer), told(renderer) {}
  kj::Timer& timer;
  const View& view;
  Renderer& renderer;
  RenderCache told;  // by watches
  bool draining = false;
  kj::Duration watch_gap = 50 * kj::MILLISECONDS;  // between two rounds of events, at least
  kj::Duration watch_idle = 5 * kj::SECONDS;       // between two looks whether the client is there
  kj::Duration log_gap = 200 * kj::MILLISECONDS;   // between two looks at a followed log
  kj::Duration write_patience = 60 * kj::SECONDS;

  size_t watches = 0;  // that stand
  // Between two rounds of one watch: longer when there are many, so that all rounds together leave
  // the loop time for requests and commits.
  kj::Duration gap() const {
    constexpr kj::Duration kShare = 250 * kj::MICROSECONDS;  // of each watch
    return std::max(watch_gap, static_cast<int64_t>(watches) * kShare);
  }

  kj::Promise<void> changed();  // resolves with the next change
  void wake();                  // there was one

  // Resolves when it is the caller's turn to render a piece. Turns are given one after the other,
  // and after some milliseconds of work the loop looks at its sockets and its inbox first: however
  // many lists and watches there are, requests and commits wait for a moment only.
  kj::Promise<void> turn();

  // Writes, with patience.
  kj::Promise<void> write(kj::AsyncOutputStream& out, std::string text);

 private:
  kj::Promise<void> give_turns();
  kj::Promise<void> give_turn(std::chrono::steady_clock::time_point until);

  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  size_t waiting_max_ = 64;  // then it is looked through
  std::deque<kj::Own<kj::PromiseFulfiller<void>>> turns_;
  kj::Promise<void> giving_ = kj::READY_NOW;
  bool gives_ = false;
};

struct WatchStart {
  uint64_t from = 0;  // position in the ring
  bool initial = false;
  bool bookmarks = false;
  bool initial_bookmark = false;  // one that ends the initial events (sendInitialEvents)
  kj::Duration time = 0 * kj::SECONDS;
};
kj::Promise<void> stream_watch(StreamContext& context, Exchange& exchange, Query query,
                               WatchStart start);

struct LogQuery {
  Key pod;
  std::optional<NodeId> ended_on;  // the pod is over, and may not be shown any more
  std::string job_uid, pod_name, container;
  bool follow = false, out = true, err = true;
  std::optional<int64_t> tail_lines;   // absent: all
  std::optional<int64_t> limit_bytes;  // absent: all
  int64_t offset = 0;                  // bytes of the stream to leave out; with one stream only
};
kj::Promise<void> stream_log(StreamContext& context, Exchange& exchange, Backend& backend,
                             LogQuery query);

}  // namespace muster::api
