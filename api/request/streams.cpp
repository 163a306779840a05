#include "api/request/streams.hpp"

#include "api/kube/objects/status_object.hpp"
#include "api/kube/schema/protobuf.hpp"
#include "api/request/call.hpp"

#include <algorithm>
#include <chrono>

namespace muster::api {
namespace {

constexpr size_t kTurnBytes = 64 * 1024;  // approximate bytes of a watch rendered per turn
constexpr size_t kEventsAtFirst = 32;     // per piece, until their size is known
constexpr auto kTurnsAtOnce = std::chrono::milliseconds(4);

class WatchStream {
 public:
  // `memory`: for what the watch remembers.
  WatchStream(StreamContext& context, Exchange& exchange, Kind kind, Watch watch, WatchStart start,
              kj::Own<Pool::Share> memory)
      : context_(context),
        exchange_(exchange),
        kind_(kind),
        form_(exchange.form()),
        encoding_(exchange.accepted.encoding),
        start_(start),
        watch_(std::move(watch)),
        memory_(kj::mv(memory)),
        ends_(context.timer.now() + start.time),
        who_(exchange.who()),
        out_(exchange.open(encoding_ == Encoding::protobuf ? kProtobufWatchType : kJsonType)) {}

  kj::Promise<void> run() {
    // Send the head at once, so that the client of a quiet watch knows that it is established.
    return context_.write(*out_, {}).then([this] { return round(); });
  }

 private:
  kj::Promise<void> round() {
    if (context_.draining || exchange_.expired || context_.timer.now() >= ends_)
      return kj::READY_NOW;
    return context_.turn(who_).then([this] { return piece(); });
  }

  kj::Promise<void> piece() {
    std::string text;
    size_t events = 0;
    const bool in_time = watch_.pull(
        [&](std::string_view type, const Shown& shown) {
          context_.rendered.append_event(text, type, shown, form_, encoding_, columns_);
          columns_ = false;
          ++events;
        },
        events_max_);
    if (watch_.remembered() == 0) memory_->give_back();
    if (events != 0) events_max_ = std::max<size_t>(1, kTurnBytes * events / text.size());
    if (!in_time) {
      add(text, "ERROR",
          dumped(status_json(410, "Expired", "too old resource version: the watch is too slow")));
      return context_.write(*out_, std::move(text));
    }
    if (start_.initial_bookmark && !watch_.behind()) {
      start_.initial_bookmark = false;
      text += bookmark(true);
    }
    if (text.empty()) return idle();
    last_sent_ = context_.timer.now();
    return context_.write(*out_, std::move(text)).then([this]() -> kj::Promise<void> {
      return watch_.behind() ? pause() : idle();
    });
  }

  // A watch that is far behind continues at once. Otherwise it waits, so that a frequently changing
  // object is sent only now and then, in its current state.
  kj::Promise<void> pause() {
    if (watch_.far_behind(events_max_)) return round();
    return context_.timer.afterDelay(context_.gap()).then([this] { return round(); });
  }

  kj::Promise<void> idle() {
    if (watch_.behind()) return pause();
    const kj::Duration left = ends_ - context_.timer.now();
    const kj::Duration wait = std::min(left, context_.watch_idle);
    return context_.changed()
        .then([] { return true; })
        .exclusiveJoin(context_.timer.afterDelay(wait).then([] { return false; }))
        .then([this](bool changed) -> kj::Promise<void> {
          if (changed) return settle();
          if (exchange_.client_gone()) return kj::READY_NOW;
          if (!start_.bookmarks || context_.timer.now() >= ends_) return round();
          return context_.write(*out_, bookmark(false)).then([this] { return round(); });
        });
  }

  // Continues at once if the last event was long enough ago, otherwise once it was.
  kj::Promise<void> settle() {
    const kj::TimePoint due = last_sent_ + context_.gap();
    if (context_.timer.now() >= due) return round();
    return context_.timer.atTime(due).then([this] { return round(); });
  }

  // Adds an event with the JSON text of its object.
  void add(std::string& text, std::string_view type, std::string object) const {
    append_watch_event(text, type, encoded(std::move(object), encoding_), encoding_);
  }

  std::string bookmark(bool initial_end) {
    std::string object = context_.renderer.bookmark(kind_, form_, watch_.version());
    if (initial_end) {
      constexpr std::string_view kTime = "\"creationTimestamp\":null";
      const size_t at = object.find(kTime);
      object.insert(at + kTime.size(), R"(,"annotations":{"k8s.io/initial-events-end":"true"})");
    }
    std::string text;
    add(text, "BOOKMARK", std::move(object));
    return text;
  }

  StreamContext& context_;
  Exchange& exchange_;
  Kind kind_;
  Form form_;
  Encoding encoding_;
  WatchStart start_;
  Watch watch_;
  kj::Own<Pool::Share> memory_;
  kj::TimePoint ends_;
  kj::TimePoint last_sent_ = kj::origin<kj::TimePoint>();
  bool columns_ = true;
  size_t events_max_ = kEventsAtFirst;
  const std::string who_;
  kj::Own<kj::AsyncOutputStream> out_;
};

template <class Stream>
kj::Promise<void> running(kj::Own<Stream> stream) {
  auto promise = stream->run();
  return promise.attach(kj::mv(stream));
}

}  // namespace

kj::Promise<void> StreamContext::changed() {
  if (waiting_.size() >= waiting_max_) {  // occasionally drop those whose promise is gone
    std::erase_if(waiting_, [](auto& fulfiller) { return !fulfiller->isWaiting(); });
    waiting_max_ = std::max<size_t>(64, 2 * waiting_.size());
  }
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void StreamContext::wake() {
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> woken;
  woken.swap(waiting_);
  for (auto& fulfiller : woken) fulfiller->fulfill();
}

kj::Promise<void> StreamContext::turn(const std::string& who) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  turns_[who].push_back(kj::mv(paf.fulfiller));
  if (!gives_) {
    gives_ = true;
    giving_ = give_turns().eagerlyEvaluate(nullptr);
  }
  return kj::mv(paf.promise);
}

kj::Promise<void> StreamContext::give_turns() {
  const auto until = std::chrono::steady_clock::now() + kTurnsAtOnce;
  return give_turn(until).then([this]() -> kj::Promise<void> {
    if (turns_.empty()) {
      gives_ = false;
      return kj::READY_NOW;
    }
    // Use a timer, so that the loop polls for external events.
    return timer.afterDelay(0 * kj::SECONDS).then([this] { return give_turns(); });
  });
}

// Gives turns one at a time, each after the previous piece is done.
kj::Promise<void> StreamContext::give_turn(std::chrono::steady_clock::time_point until) {
  while (!turns_.empty() && std::chrono::steady_clock::now() < until) {
    auto user = turns_.upper_bound(last_);
    if (user == turns_.end()) user = turns_.begin();
    last_ = user->first;
    auto fulfiller = kj::mv(user->second.front());
    user->second.pop_front();
    if (user->second.empty()) turns_.erase(user);
    if (!fulfiller->isWaiting()) continue;
    fulfiller->fulfill();
    return kj::evalLast([this, until] { return give_turn(until); });
  }
  return kj::READY_NOW;
}

kj::Promise<void> StreamContext::write(kj::AsyncOutputStream& out, std::string text) {
  if (text.empty()) return kj::READY_NOW;
  return timer.timeoutAfter(write_patience, write_text(out, std::move(text)));
}

kj::Promise<void> too_many_watches(const StreamContext& context, Exchange& exchange) {
  return exchange.send_status(
      429, "TooManyRequests",
      "too many watches are open: at most " + std::to_string(context.watch_places.each_max()) +
          " are for one user and " + std::to_string(context.watch_places.all_max()) +
          " for all together",
      {{"retryAfterSeconds", 1}});
}

kj::Promise<void> stream_watch(StreamContext& context, Exchange& exchange, Query query,
                               WatchStart start) {
  const std::string who = exchange.who();
  auto place = kj::heap<Pool::Share>(context.watch_places, who);
  if (!place->take(1)) return too_many_watches(context, exchange);
  // Its start looks at all objects, so that takes a turn too.
  auto watching =
      context.turn(who).then([&context, &exchange, query = std::move(query), start]() mutable {
        const Kind kind = query.kind;
        if (start.initial) start.from = context.view.changes(kind).end();
        Watch watch(context.view, std::move(query), start.from, start.initial, start.after);
        auto memory = kj::heap<Pool::Share>(context.watch_memory, exchange.who());
        if (!memory->take(watch.remembered()))
          return exchange.send_status(429, "TooManyRequests",
                                      "the watches remember too many objects: at most " +
                                          std::to_string(context.watch_memory.each_max() >> 10) +
                                          " KiB are for one user and " +
                                          std::to_string(context.watch_memory.all_max() >> 10) +
                                          " KiB for all together; try again later",
                                      {{"retryAfterSeconds", 1}});
        return running(kj::heap<WatchStream>(context, exchange, kind, std::move(watch), start,
                                             kj::mv(memory)));
      });
  return watching.attach(kj::mv(place));
}

}  // namespace muster::api
