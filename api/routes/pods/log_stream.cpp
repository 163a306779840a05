#include "api/routes/pods/log_stream.hpp"

#include "api/request/call.hpp"
#include "api/routes/pods/log_lines.hpp"
#include "core/job/shown/container_run.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

constexpr int64_t kReadMin = 4096;  // bytes, of lines to be put in order

class LogStream {
 public:
  LogStream(StreamContext& context, Exchange& exchange, Backend& backend, LogQuery query)
      : context_(context),
        exchange_(exchange),
        backend_(backend),
        query_(std::move(query)),
        left_(query_.limit_bytes.value_or(INT64_MAX)),
        lines_(query_.out && query_.err ? 2 : 1, query_.timestamps) {
    if (query_.out) parts_.push_back({.err = false});
    if (query_.err) parts_.push_back({.err = true});
    for (Part& part : parts_) {
      part.offset = query_.tail_lines.value_or(0) > 0 ? -*query_.tail_lines : query_.offset;
      part.seek_end = query_.tail_lines == 0;
    }
  }

  kj::Promise<void> run() {
    if (query_.ended_on) {
      node_ = *query_.ended_on;
      return node_ == kNoNode ? finish() : begin();
    }
    const auto shown = context_.view.find(query_.pod);
    if (shown && !shown->pod->bound() && !shown->pod->ended) {
      if (!query_.follow)
        return exchange_.send_status(400, "BadRequest",
                                     "container \"" + query_.container + "\" in pod \"" +
                                         query_.pod_name +
                                         "\" is waiting to start: no slot is free yet");
      if (exchange_.client_gone() || context_.draining) return kj::READY_NOW;
      return later([this] { return run(); });
    }
    if (!shown) return finish();
    node_ = shown->pod->node;
    if (node_ == kNoNode) return finish();
    return begin();
  }

 private:
  struct Part {
    bool err = false;
    int64_t offset = 0;
    bool seek_end = false;
    bool over = false;
  };

  // Finds the beginning, if that takes the node's knowledge of lines and processes.
  kj::Promise<void> begin() {
    // Of a single output, they are found by its offset.
    const bool ordered =
        query_.tail_lines.value_or(0) > 0 && (query_.run >= 0 || parts_.size() > 1);
    if (query_.tail_lines == 0 || (query_.run <= 0 && query_.since == 0 && !ordered))
      return next(0);
    auto call = new_call<Result<LogBegins>>();
    LogSearch search;
    fill_in(search);
    search.out = query_.out;
    search.err = query_.err;
    search.last_lines = query_.tail_lines;
    search.since = query_.since;
    backend_.find_log(std::move(search), std::move(call.done));
    return call.promise.then([this](Result<LogBegins>&& begins) -> kj::Promise<void> {
      if (!begins.ok()) return exchange_.send_error(begins.error(), "pods", query_.pod_name);
      if (!begins->known && query_.since > 0)
        exchange_.warnings.push_back(
            "the pod's node does not know the times of lines, so none is left out for its age");
      if (begins->known)
        for (Part& part : parts_) part.offset = part.err ? begins->err : begins->out;
      return next(0);
    });
  }

  // Reads what is missing of one output, then of the next.
  kj::Promise<void> next(size_t index) {
    if (index == parts_.size()) return print();
    if (parts_[index].over || !lines_.wants(index)) return next(index + 1);
    const bool grows = may_grow();  // asked first: what ends meanwhile is complete when it is read
    return read(parts_[index])
        .then([this, index, grows](Result<LogChunk>&& answer) -> kj::Promise<void> {
          if (!answer.ok()) {
            if (!exchange_.started())
              return exchange_.send_error(answer.error(), "pods", query_.pod_name);
            if (!query_.follow || !pod_open()) return finish();
            lines_.pause(index);  // its node may come back
            return next(index + 1);
          }
          return next(taken(index, *answer, grows) ? index : index + 1);
        });
  }

  // True: there is more of this output.
  bool taken(size_t index, LogChunk& chunk, bool grows) {
    Part& part = parts_[index];
    if (!chunk.found) {
      part.offset = std::max<int64_t>(part.offset, 0);
      settle(index, query_.follow && (chunk.running || grows));
      return false;
    }
    if (part.seek_end) {
      part.seek_end = false;
      part.offset = chunk.size;
      return true;
    }
    const int64_t begin = chunk.offset;
    part.offset = begin + static_cast<int64_t>(chunk.data.size());
    const bool more = part.offset < chunk.size && !chunk.data.empty();
    lines_.add(index, begin, std::move(chunk.data), chunk.marks, query_.otherwise_at);
    if (!more) settle(index, query_.follow && chunk.running && grows);
    return more;
  }

  // Nothing more can be read of this output, now or at all.
  void settle(size_t index, bool grows) {
    parts_[index].over = !grows;
    grows ? lines_.pause(index) : lines_.end(index);
  }

  kj::Promise<void> print() {
    std::string text = lines_.take();
    if (static_cast<int64_t>(text.size()) > left_) text.resize(static_cast<size_t>(left_));
    left_ -= static_cast<int64_t>(text.size());
    if (text.empty()) return round_over();
    open();
    return context_.write(*out_, std::move(text)).then([this]() -> kj::Promise<void> {
      if (left_ <= 0) return finish();
      return lines_.paused() ? round_over() : next(0);
    });
  }

  kj::Promise<void> round_over() {
    const bool over =
        std::all_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.over; });
    if (over || context_.draining || exchange_.client_gone()) return finish();
    open();
    return later([this] { return next(0); });
  }

  void fill_in(LogSource& source) const {
    source.node = node_;
    source.node_name = context_.view.node_name(node_);
    source.pod = {query_.pod.job, query_.pod.pod.index, query_.pod.pod.attempt};
    source.job_uid = query_.job_uid;
    source.pod_name = query_.pod_name;
    source.container = query_.container;
    source.run = query_.run;
  }

  kj::Promise<Result<LogChunk>> read(const Part& part) {
    auto call = new_call<Result<LogChunk>>();
    LogRequest request;
    fill_in(request);
    request.stderr_stream = part.err;
    request.offset = part.seek_end ? -1 : part.offset;
    request.times = query_.timestamps || parts_.size() > 1;
    const int64_t wanted = request.times ? std::max(left_, kReadMin) : left_;
    request.limit = static_cast<uint32_t>(std::min<int64_t>(wanted, request.limit));
    backend_.read_log(std::move(request), std::move(call.done));
    return kj::mv(call.promise);
  }

  bool pod_open() const {
    const auto shown = context_.view.find(query_.pod);
    return shown && !shown->pod->ended;
  }

  // Whether the process that is asked for, or any other, may still write.
  bool may_grow() const {
    const auto shown = context_.view.find(query_.pod);
    if (!shown || shown->pod->ended) return false;
    if (query_.run < 0) return true;
    const core::ContainerRun run =
        core::container_run(*shown->pod, query_.position, query_.only_one);
    return run.current <= query_.run && !(run.current == query_.run && run.begun && run.over);
  }

  template <class F>
  kj::Promise<void> later(F f) {
    return context_.timer.afterDelay(context_.log_gap).then(kj::mv(f));
  }

  void open() {
    if (!exchange_.started()) out_ = exchange_.open("text/plain; charset=utf-8");
  }

  kj::Promise<void> finish() {
    open();
    out_ = nullptr;
    return kj::READY_NOW;
  }

  StreamContext& context_;
  Exchange& exchange_;
  Backend& backend_;
  const LogQuery query_;
  NodeId node_ = kNoNode;
  int64_t left_;
  std::vector<Part> parts_;
  LogLines lines_;
  kj::Own<kj::AsyncOutputStream> out_;
};

}  // namespace

kj::Promise<void> stream_log(StreamContext& context, Exchange& exchange, Backend& backend,
                             LogQuery query) {
  auto stream = kj::heap<LogStream>(context, exchange, backend, std::move(query));
  auto promise = stream->run();
  return promise.attach(kj::mv(stream));
}

}  // namespace muster::api
