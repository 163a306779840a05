// Streams: responses that are produced piece by piece: watches here, logs in
// api/routes/pods/log_stream.hpp, lists in list_stream.hpp.
//
// Each is an object on the API's loop that writes a piece, waits until the client has taken it, and
// then produces the next. So nothing queues up for a slow client; the client just falls behind. It
// is disconnected if it does not take a piece within a minute.
#pragma once

#include "api/request/backend.hpp"
#include "api/request/exchange.hpp"
#include "api/view/query/watch.hpp"
#include "api/view/render/render_cache.hpp"
#include "base/peer/pool.hpp"

#include <kj/async-io.h>
#include <kj/timer.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// Shared by all streams; owned by the server.
class StreamContext {
 public:
  // The most of all users and of each: open watches, and the bytes that these remember.
  struct Shares {
    size_t watches, user_watches, memory, user_memory;
  };
  StreamContext(kj::Timer& timer, const View& view, Renderer& renderer, Shares most)
      : timer(timer),
        view(view),
        renderer(renderer),
        rendered(renderer),
        watch_places(most.watches, most.user_watches),
        watch_memory(most.memory, most.user_memory) {}
  kj::Timer& timer;
  const View& view;
  Renderer& renderer;
  RenderCache rendered;  // rendered objects of watches
  bool draining = false;
  kj::Duration watch_gap = 50 * kj::MILLISECONDS;  // minimum time between two rounds of events
  kj::Duration watch_idle = 5 * kj::SECONDS;       // between checks that the client is still there
  kj::Duration log_gap = 200 * kj::MILLISECONDS;   // between reads of a followed log
  kj::Duration write_patience = 60 * kj::SECONDS;
  kj::Duration token_gap = 2 * kj::SECONDS;  // between checks that a request's token is valid

  Pool watch_places, watch_memory;
  // Minimum time between two rounds of a watch. It grows with the number of watches, to leave the
  // loop time for requests and commits.
  kj::Duration gap() const {
    constexpr kj::Duration kShare = 250 * kj::MICROSECONDS;  // for each watch
    return std::max(watch_gap, static_cast<int64_t>(watch_places.used()) * kShare);
  }

  kj::Promise<void> changed();  // resolves at the next change
  void wake();                  // reports a change

  // Resolves when it is the caller's turn to render a piece. Turns are given one at a time, to one
  // user after the other, and every few milliseconds the loop first polls its sockets and its
  // inbox. So requests and commits wait only briefly, however many lists and watches there are, and
  // the lists and watches of one user do not wait for all those of another.
  kj::Promise<void> turn(const std::string& who);

  // Writes, within write_patience.
  kj::Promise<void> write(kj::AsyncOutputStream& out, std::string text);

 private:
  kj::Promise<void> give_turns();
  kj::Promise<void> give_turn(std::chrono::steady_clock::time_point until);

  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  size_t waiting_max_ = 64;  // size at which to drop fulfillers whose promise is gone
  using Turns = std::deque<kj::Own<kj::PromiseFulfiller<void>>>;
  std::map<std::string, Turns> turns_;  // by user; none is empty
  std::string last_;                    // the user who had the last turn
  kj::Promise<void> giving_ = kj::READY_NOW;
  bool gives_ = false;
};

struct WatchStart {
  uint64_t from = 0;   // position in the ring
  uint64_t after = 0;  // a version that does not exist yet; 0: none
  bool initial = false;
  bool bookmarks = false;
  bool initial_bookmark = false;  // marks the end of the initial events (sendInitialEvents)
  kj::Duration time = 0 * kj::SECONDS;
};
// Refuses a watch for which Pool has no place.
kj::Promise<void> too_many_watches(const StreamContext& context, Exchange& exchange);
kj::Promise<void> stream_watch(StreamContext& context, Exchange& exchange, Query query,
                               WatchStart start);

}  // namespace muster::api
