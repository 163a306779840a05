#include "agent/run/sessions.hpp"

#include "agent/link/wire.hpp"
#include "base/hex.hpp"
#include "base/log.hpp"
#include "core/pod_name.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <array>
#include <set>
#include <sys/inotify.h>
#include <unistd.h>
#include <utility>

namespace muster::agent {
namespace {

constexpr Millis kReadWaitMs = 5'000;
constexpr Millis kEndGraceMs = 5'000;  // between SIGTERM and SIGKILL
constexpr uint32_t kReadMax = 256u << 10;
constexpr size_t kWriteMax = 64u << 10;
constexpr size_t kSessionsMax = 4'096;  // of a node at a time
constexpr size_t kIdSize = 32;
constexpr int kNotStarted = 255;
constexpr uint16_t kNumberMax = 65'535;  // sessions of a pod
constexpr size_t kNumbersMax = 10'000;   // pods whose last number is remembered

kj::ArrayPtr<const kj::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
}

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class Sessions::Server final : public wire::Process::Server {
 public:
  Server(Sessions& sessions, std::string id)
      : sessions_(sessions), alive_(sessions.alive_), id_(std::move(id)) {
    sessions_.hold(id_, 1);
  }
  ~Server() noexcept(false) {
    if (*alive_) sessions_.hold(id_, -1);
  }
  kj::Promise<void> read(ReadContext context) override {
    return sessions_.read(id_, context, sessions_.timer_.now() + kReadWaitMs * kj::MILLISECONDS);
  }
  kj::Promise<void> write(WriteContext context) override {
    return sessions_.write(id_, context, sessions_.timer_.now() + kReadWaitMs * kj::MILLISECONDS);
  }
  kj::Promise<void> end(EndContext) override {
    sessions_.end(id_);
    return kj::READY_NOW;
  }

 private:
  Sessions& sessions_;
  const std::shared_ptr<bool> alive_;
  const std::string id_;
};
#pragma GCC diagnostic pop

Sessions::Sessions(kj::UnixEventPort& port, kj::Timer& timer, Executor& executor, LogStore& logs)
    : port_(port), timer_(timer), executor_(executor), logs_(logs) {
  executor_.listen(*this);
}

Sessions::~Sessions() noexcept(false) {
  *alive_ = false;
}

Result<wire::Process::Client> Sessions::join(const core::node::PodTemplatePtr& job, PodId pod,
                                             const std::string& id, Command command,
                                             core::node::DeviceMapPtr devices) {
  if (!is_hex(id, kIdSize)) return Error{Errc::invalid, "the id of a session is malformed"};
  const auto known = sessions_.find(id);
  if (known != sessions_.end() && known->second.key.pod != pod)
    return Error{Errc::invalid, "the session belongs to another pod"};
  if (known == sessions_.end()) {
    if (command.words.empty()) return Error{Errc::conflict, "the session is over", {}};
    if (sessions_.size() >= kSessionsMax)
      return Error{Errc::overloaded, "the node has " + std::to_string(kSessionsMax) + " sessions"};
    const uint16_t container =
        command.container.value_or(static_cast<uint16_t>(job->init_containers));
    if (container >= job->containers.size())
      return Error{Errc::invalid, "the pod has no such container"};
    const std::string& name = job->containers[container].what.name;
    Session session;
    session.id = id;
    session.job_uid = job->job_uid;
    session.pod_name = core::pod_name(job->job_name, job->job_uid, job->indexed, pod.key());
    const auto number = next_number(pod, session.job_uid, session.pod_name, name);
    if (!number)
      return Error{Errc::overloaded,
                   "the pod has reached its limit of " + std::to_string(kNumberMax) + " commands"};
    session.key = {pod, container, *number};
    session.log = name + "~" + std::to_string(*number);
    if (Status started = executor_.start_session(
            {session.key, id, job, session.pod_name, session.log, std::move(command.words),
             std::move(devices), command.reads, command.terminal});
        !started)
      return started.error();
    session.writing = true;
    watch(session.job_uid);
    sessions_.emplace(id, std::move(session));
  }
  return wire::Process::Client(kj::heap<Server>(*this, id));
}

bool Sessions::has(const std::string& id, PodId pod) const {
  const auto found = sessions_.find(id);
  return found != sessions_.end() && found->second.key.pod == pod;
}

// The output of an earlier session, forgotten here, may still exist.
std::optional<uint16_t> Sessions::next_number(PodId pod, const std::string& job_uid,
                                              const std::string& pod_name,
                                              const std::string& container) {
  uint16_t& last = numbers_[pod];
  while (last < kNumberMax)
    if (!logs_.exists(job_uid, pod_name, container + "~" + std::to_string(++last))) return last;
  return std::nullopt;
}

Sessions::Session* Sessions::find(const Executor::SessionKey& key) {
  for (auto& [id, session] : sessions_)
    if (session.key == key) return &session;
  return nullptr;
}

void Sessions::on_session_ended(const Executor::SessionEnd& end) {
  Session* session = find(end.key);
  if (session == nullptr) {
    if (end.entry) executor_.forget({*end.entry});
    return;
  }
  if (std::exchange(session->writing, false)) logs_.close(session->job_uid, session->pod_name);
  session->end = end;
  answer_writer(*session, {{}, true});
  const std::string id = session->id;
  if (session->ending)
    forget(id);
  else
    wake(id);
}

void Sessions::on_sessions(std::vector<Executor::SessionFound> found) {
  std::set<std::string> listed;
  for (auto& one : found) {
    uint16_t& last = numbers_[one.key.pod];
    last = std::max(last, one.key.number);
    Session& session = sessions_[one.id];
    session.id = one.id;
    session.key = one.key;
    session.job_uid = one.job_uid;
    session.pod_name = one.pod_name;
    session.log = one.log;
    listed.insert(one.id);
    // The logs of living sessions have just been adopted.
    if (session.writing && !one.end) logs_.close(one.job_uid, one.pod_name);
    session.writing = session.writing || !one.end;
    watch(session.job_uid);
    if (one.end)
      on_session_ended(*one.end);
    else if (session.ending)
      executor_.kill_session(one.key, kEndGraceMs);
    // The keeper may not have received what was written.
    answer_writer(session, {});
  }
  std::vector<std::string> lost;
  for (auto& [id, session] : sessions_)
    if (!session.end && !listed.contains(id)) lost.push_back(id);
  for (const std::string& id : lost) {
    const Session& session = sessions_.at(id);
    on_session_ended({session.key, std::nullopt, kNotStarted, 0, true, "its keeper died", false});
  }
}

kj::Promise<void> Sessions::read(const std::string& id, ReadCall context, kj::TimePoint until) {
  const auto found = sessions_.find(id);
  auto results = context.getResults();
  if (found == sessions_.end()) {
    results.setEnded(true);
    results.setExitCode(kNotStarted);
    results.setMessage("the session is over");
    return kj::READY_NOW;
  }
  Session& session = found->second;
  session.unheld_ms = 0;
  // Before the files are read: what has ended writes no more.
  const std::optional<Executor::SessionEnd> end = session.end;
  const uint64_t before = session.writes;
  const auto params = context.getParams();
  const uint64_t from_out = params.getStdout(), from_err = params.getStderr();
  const size_t limit = std::clamp<uint32_t>(params.getLimit(), 1, kReadMax);
  const LogName name{session.job_uid, session.pod_name, session.log, false};
  LogName err_name = name;
  err_name.err = true;
  return chunk(name, from_out, limit)
      .then([this, err_name, from_err, limit](LogChunk&& out) {
        return chunk(err_name, from_err, limit)
            .then([out = std::move(out)](LogChunk&& err) mutable {
              return std::make_pair(std::move(out), std::move(err));
            });
      })
      .then([this, id, context, until, end, from_out, from_err,
             before](std::pair<LogChunk, LogChunk>&& got) mutable -> kj::Promise<void> {
        const auto& [out, err] = got;
        if (out.data.empty() && err.data.empty() && !end && timer_.now() < until)
          return wait(id, context, until, before);
        auto results = context.getResults();
        results.setStdout(bytes_of(out.data));
        results.setStderr(bytes_of(err.data));
        auto whole = [](const LogChunk& one, uint64_t offset) {
          return offset + one.data.size() >= one.size;
        };
        if (end && whole(out, from_out) && whole(err, from_err)) {
          results.setEnded(true);
          results.setExitCode(end->lost || end->unstarted ? kNotStarted : end->exit_code);
          results.setMessage(end->error);
        }
        return kj::READY_NOW;
      });
}

kj::Promise<void> Sessions::wait(const std::string& id, ReadCall context, kj::TimePoint until,
                                 uint64_t before) {
  const auto found = sessions_.find(id);
  // Something may have happened while its files were read.
  if (found == sessions_.end() || found->second.end || found->second.writes != before)
    return read(id, context, until);
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back({id, kj::mv(paf.fulfiller)});
  return paf.promise.exclusiveJoin(timer_.atTime(until)).then([this, id, context, until]() mutable {
    return read(id, context, until);
  });
}

// The keeper ignores input that it has already taken, so a client that missed the answer may send
// it again, even to another agent. One write of a session waits; a later one replaces it.
kj::Promise<void> Sessions::write(const std::string& id, WriteCall context, kj::TimePoint until) {
  const auto found = sessions_.find(id);
  const auto params = context.getParams();
  const uint64_t offset = params.getOffset();
  if (found == sessions_.end() || found->second.end) {
    context.getResults().setTaken(offset);
    context.getResults().setClosed(true);
    return kj::READY_NOW;
  }
  Session& session = found->second;
  session.unheld_ms = 0;
  const auto data = params.getData();
  const size_t size = std::min(data.size(), kWriteMax);
  const bool eof = params.getEof() && size == data.size();
  answer_writer(session, {});
  auto paf = kj::newPromiseAndFulfiller<Taken>();
  session.writer = kj::mv(paf.fulfiller);
  executor_.write_session(session.key, offset, {reinterpret_cast<const char*>(data.begin()), size},
                          eof);
  auto late = timer_.atTime(until).then([] { return Taken{}; });
  return paf.promise.exclusiveJoin(kj::mv(late))
      .then([this, id, context, until, offset,
             more = size > 0 || eof](Taken taken) mutable -> kj::Promise<void> {
        // There is room now.
        if (taken.bytes == offset && more && !taken.closed && timer_.now() < until)
          return write(id, context, until);
        context.getResults().setTaken(taken.bytes.value_or(offset));
        context.getResults().setClosed(taken.closed);
        return kj::READY_NOW;
      });
}

void Sessions::answer_writer(Session& session, Taken taken) {
  KJ_IF_MAYBE (writer, session.writer) (*writer)->fulfill(kj::mv(taken));
  session.writer = nullptr;
}

void Sessions::on_session_input(const Executor::SessionKey& key, uint64_t taken, bool closed) {
  if (Session* const session = find(key)) answer_writer(*session, {taken, closed});
}

kj::Promise<LogChunk> Sessions::chunk(const LogName& name, uint64_t offset, size_t limit) {
  return read_log(logs_, executor_, name,
                  static_cast<int64_t>(std::min<uint64_t>(offset, INT64_MAX)), limit);
}

void Sessions::end(const std::string& id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  if (found->second.end) return forget(id);
  found->second.ending = true;
  executor_.kill_session(found->second.key, kEndGraceMs);
}

void Sessions::forget(const std::string& id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  if (const auto& end = found->second.end; end && end->entry) executor_.forget({*end->entry});
  const std::string job_uid = found->second.job_uid;
  const PodId pod = found->second.key.pod;
  wake(id);
  answer_writer(found->second, {{}, true});
  sessions_.erase(found);
  const auto of = [&](auto same) {
    return std::ranges::any_of(sessions_, [&](const auto& one) { return same(one.second); });
  };
  // A number that is not remembered is found from the files, one by one.
  if (numbers_.size() > kNumbersMax && !of([&](const Session& one) { return one.key.pod == pod; }))
    numbers_.erase(pod);
  if (of([&](const Session& one) { return one.job_uid == job_uid; })) return;
  if (auto folder = watched_.find(job_uid); folder != watched_.end()) {
    inotify_rm_watch(inotify_, folder->second);
    watched_.erase(folder);
  }
}

void Sessions::hold(const std::string& id, int change) {
  if (auto found = sessions_.find(id); found != sessions_.end()) {
    found->second.holders += static_cast<unsigned>(change);
    found->second.unheld_ms = 0;
  }
}

void Sessions::wake(const std::string& id) {
  std::erase_if(waiting_, [&id](Waiting& one) {
    if (one.id == id) one.wake->fulfill();
    return one.id == id;
  });
}

void Sessions::check(bool connected) {
  std::vector<std::string> over;
  for (auto& [id, session] : sessions_) {
    if (session.holders > 0 || session.ending || !connected) continue;
    session.unheld_ms += kCheckMs;
    if (session.unheld_ms >= kUnheldMs) over.push_back(id);
  }
  for (const std::string& id : over) end(id);
  std::erase_if(waiting_, [](Waiting& one) { return !one.wake->isWaiting(); });
}

void Sessions::watch(const std::string& job_uid) {
  if (watched_.contains(job_uid)) return;
  if (inotify_.get() < 0) {
    inotify_ = kj::AutoCloseFd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (inotify_.get() < 0) return;  // reads then return when their time is up
    observer_.emplace(port_, inotify_, kj::UnixEventPort::FdObserver::OBSERVE_READ);
    watching_ = watch_files().eagerlyEvaluate([](kj::Exception&& e) {
      log::warn("output of sessions is not watched: {}", e.getDescription().cStr());
    });
  }
  const int folder = inotify_add_watch(inotify_, logs_.folder(job_uid).c_str(),
                                       IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  if (folder >= 0) watched_.emplace(job_uid, folder);
}

// Wakes the reads that wait for what was written.
kj::Promise<void> Sessions::watch_files() {
  return KJ_ASSERT_NONNULL(observer_).whenBecomesReadable().then([this] {
    alignas(inotify_event) std::array<char, 16'384> events{};
    std::set<std::string, std::less<>> written;  // names of files
    bool all = false;
    ssize_t size = 0;
    while ((size = ::read(inotify_, events.data(), events.size())) > 0) {
      for (const char* at = events.data(); at < events.data() + size;) {
        const auto& event = *reinterpret_cast<const inotify_event*>(at);
        all = all || (event.mask & IN_Q_OVERFLOW) != 0;
        if (event.len > 0) written.emplace(event.name);
        at += sizeof event + event.len;
      }
    }
    std::set<std::string_view> ids;
    for (auto& [id, session] : sessions_) {
      const std::string stem = session.pod_name + "." + session.log;
      if (!all && !written.contains(stem + ".stdout") && !written.contains(stem + ".stderr"))
        continue;
      ++session.writes;
      ids.insert(id);
    }
    std::erase_if(waiting_, [&ids](Waiting& one) {
      const bool woken = ids.contains(one.id);
      if (woken) one.wake->fulfill();
      return woken;
    });
    return watch_files();
  });
}

}  // namespace muster::agent
