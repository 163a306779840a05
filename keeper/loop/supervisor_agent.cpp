// The supervisor's end of the agent's connection. There is one at a time; a new one replaces it.
#include "base/exec_exit.hpp"
#include "base/version.hpp"
#include "keeper/kernel/tell.hpp"
#include "keeper/loop/supervisor.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <set>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kReadBytes = 64u << 10;
constexpr size_t kSessionsMax = 60'000;  // of a container

Millis ms_of(uint64_t ns) {
  return static_cast<Millis>(ns / 1'000'000);
}

int64_t age_ms(uint64_t now_ns, uint64_t then_ns) {
  return now_ns > then_ns ? static_cast<int64_t>((now_ns - then_ns) / 1'000'000) : 0;
}

std::optional<ReportedStart> reported(const std::optional<Start>& start, uint64_t now_ns) {
  if (!start) return std::nullopt;
  return ReportedStart{start->pid, age_ms(now_ns, start->at_ns)};
}

}  // namespace

void Supervisor::accept_agent() {
  int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  const uid_t user = owners_ != nullptr ? owners_->agent_uid() : geteuid();
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
      (peer.uid != user && peer.uid != 0)) {
    close(fd);
    return;
  }
  if (agent_fd_ >= 0) read_agent();  // orders that the old one sent before it died
  drop_agent();
  agent_fd_ = fd;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  event.data.u64 = kAgentEvent;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) < 0) tell_errno("epoll_ctl");
}

void Supervisor::drop_agent() {
  if (agent_fd_ < 0) return;
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, agent_fd_, nullptr);
  close(agent_fd_);
  agent_fd_ = -1;
  greeted_ = false;
  pinged_ns_.reset();
  permits_.clear();
  next_fences_.clear();
  in_ = {};
  out_.clear();
  out_done_ = 0;
  for (auto& [entry, process] : processes_) process->start_reported = process->input_waits = false;
}

void Supervisor::read_agent() {
  char bytes[kReadBytes];
  bool open = true;
  while (open && agent_fd_ >= 0) {
    ssize_t size = recv(agent_fd_, bytes, sizeof bytes, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    open = size > 0;
    if (open) in_.append(bytes, static_cast<size_t>(size));
    Type type{};
    std::string_view payload;
    while (open && in_.next(type, payload)) on_frame(type, payload);
    if (in_.broken()) open = false;
  }
  drop_agent();
}

void Supervisor::on_frame(Type type, std::string_view payload) {
  Reader in(payload);
  if (type == Type::hello) return on_hello(in);
  if (!greeted_) return;
  if (type == Type::spawn || type == Type::enqueue)
    return on_spawn(in, type == Type::enqueue, false);
  if (type == Type::spawn_as || type == Type::enqueue_as)
    return on_spawn(in, type == Type::enqueue_as, true);
  if (type == Type::permit) return on_permit(in);
  if (type == Type::input) return on_input(in);
  if (type == Type::fence) return on_fence(in);
  if (type == Type::contact) return on_contact(in);
  if (type == Type::release || type == Type::keep) return on_pods(in, type == Type::keep);
  if (type == Type::kill) {
    Key key = Key::read(in);
    auto grace_ms = in.num<int64_t>();
    auto it = by_key_.find(key);
    if (in.ok() && it != by_key_.end()) kill(*it->second, grace_ms);
  } else if (type == Type::signal) {
    const Key key = Key::read(in);
    const auto number = in.num<uint8_t>();
    const bool first_only = in.num<uint8_t>() != 0;
    const auto it = by_key_.find(key);
    if (in.ok() && it != by_key_.end() && it->second->state == State::running)
      spawner_.signal(it->second->entry, number, first_only);
  } else if (type == Type::forget) {
    Process* process = find(in.num<uint64_t>());
    if (process == nullptr || !process->committed) return;
    spool_.forget(*process);
    remove(*process);
  } else if (type == Type::room) {
    auto room = in.num<uint32_t>();
    if (in.ok()) spawner_.set_room(room);
  } else if (type == Type::withdraw) {
    auto it = by_key_.find(Key::read(in));
    if (in.ok() && it != by_key_.end())
      withdraw(*it->second, "it was withdrawn while it was still queued");
  } else if (type == Type::end_all) {
    stop();
  } else if (type == Type::ping) {
    if (!pinged_ns_) pinged_ns_ = now_ns_;
  }
}

void Supervisor::on_hello(Reader in) {
  auto version = in.num<uint32_t>();
  std::string cluster(in.text());
  if (!in.ok() || version < kOldestVersion || version > kVersion) {
    Frame(out_, Type::refused)
        .text("the keeper speaks versions " + std::to_string(kOldestVersion) + " to " +
              std::to_string(kVersion));
    return;
  }
  spool_.set_cluster(cluster);
  commit();
  greeted_ = true;
  agent_version_ = version;
  Frame(out_, Type::welcome)
      .num(version)
      .num(static_cast<uint8_t>((cgroups_ != nullptr ? cgroups_->can() : 0) |
                                (owners_ != nullptr ? kCanRunAs : 0) |
                                (spaces_.no_mounts.empty() ? kCanMount : 0)))
      .text(options_.no_limits)
      .text(spaces_.dirs == nullptr ? "" : spaces_.dirs->path())
      .text(spaces_.no_dirs)
      .text(spaces_.no_mounts)
      .text(spaces_.dirs == nullptr ? "" : spaces_.dirs->memory_path())
      .text(muster::kVersion);
  for (auto& [entry, process] : processes_) {
    if (!shown(process->key)) continue;
    if (process->committed) {
      tell_end(*process);
      continue;
    }
    Frame frame(out_, Type::living);
    process->key.write(frame);
    const bool begun = process->start && !process->unborn;
    ReportedStart::write(frame, begun ? reported(process->start, now_ns_) : std::nullopt);
    frame.num(uint8_t{process->killing}).text(process->note).num(uint8_t{process->enqueued});
    frame.text(core::node::cpu_list_text(process->cpus));
    process->start_reported = begun;
  }
  Frame(out_, Type::inventory_done);
}

// A permit that is not accepted is not kept, so orders that name it are refused.
void Supervisor::on_permit(Reader in) {
  const auto id = in.num<uint64_t>();
  const std::string_view bytes = in.text(), signature = in.text();
  const std::string_view job = in.rest().empty() ? std::string_view() : in.text();
  if (!in.ok() || owners_ == nullptr) return;
  auto permit = owners_->accept(bytes, signature, job);
  if (!permit.ok()) {
    permits_.erase(id);
    tell("a permit is refused: %s", permit.error().message.c_str());
    return;
  }
  if (permits_.size() >= kPermitsMax) permits_.clear();
  permits_[id] = std::move(*permit);
}

void Supervisor::on_fence(Reader in) {
  const Key key = Key::read(in);
  const auto after_ms = in.num<int64_t>(), grace_ms = in.num<int64_t>();
  if (in.ok() && after_ms > 0)
    next_fences_[key] = {static_cast<uint64_t>(after_ms) * 1'000'000, grace_ms};
}

// Capped at now: a contact in the future would postpone all fences.
void Supervisor::on_contact(Reader in) {
  const auto at_ms = in.num<int64_t>();
  if (!in.ok() || at_ms < 0) return;
  contact_ns_ = std::max(contact_ns_, std::min(static_cast<uint64_t>(at_ms) * 1'000'000, now_ns_));
}

void Supervisor::on_pods(Reader in, bool keep) {
  std::set<PodId> pods;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) pods.insert(read_pod(in));
  if (!in.ok() || spaces_.dirs == nullptr) return;
  // Whatever the agent says, the pod of a living process keeps its directories.
  std::set<PodId> living;
  for (const auto& [key, process] : by_key_)
    if (!process->ended) living.insert({key.job, key.index, key.attempt});
  if (keep) {
    living.insert(pods.begin(), pods.end());
    return spaces_.dirs->keep(living);
  }
  for (const PodId pod : pods)
    if (!living.contains(pod)) spaces_.dirs->release(pod);
}

void Supervisor::tell_full() {
  if (spaces_.dirs == nullptr || !greeted_ || agent_version_ < kSpaces) return;
  for (const PodDirs::Full& one : spaces_.dirs->take_full()) {
    Frame frame(out_, Type::full);
    write_pod(frame, one.pod);
    frame.text(one.volume).num(one.used).num(one.limit);
  }
}

// Reads the rest of an order with a permit. False: it is malformed.
bool Supervisor::read_as(Reader& in, const Key& key, SpawnJob& job) {
  const auto id = in.num<uint64_t>();
  job.limits.memory_bytes = in.num<uint64_t>();
  job.limits.cpu_millis = in.num<uint64_t>();
  job.contained = in.num<uint8_t>() != 0;
  job.not_after_ms = in.num<int64_t>();
  PermitOrder& order = job.as.emplace();
  // A permit for a session starts nothing else.
  if (const auto known = permits_.find(id);
      known != permits_.end() && known->second->session.has_value() == key.session())
    order.permit = known->second;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    std::vector<uint32_t>& numbers = order.devices[std::string(in.text())];
    for (auto left = in.num<uint32_t>(); left > 0 && in.ok(); --left)
      numbers.push_back(in.num<uint32_t>());
  }
  if (!in.rest().empty()) {
    order.run = in.text();
    order.mpi.leader_address = in.text();
    order.mpi.iface = in.text();
  }
  if (!in.rest().empty()) order.private_tmp = in.num<uint8_t>() != 0;
  if (!in.rest().empty()) job.cpus = in.num<uint32_t>();
  job.number = key.instance;
  job.pod = {key.job, key.index, key.attempt};
  job.container = key.container;
  // The agent shows a hook's last line.
  job.agent_reads = agent_version_ < kOpensOutputs || job.hook();
  job.as_root = job.hook() && owners_ != nullptr && owners_->hooks_as_root();
  return in.ok();
}

void Supervisor::on_spawn(Reader in, bool enqueued, bool as_owner) {
  Key key = Key::read(in);
  std::string_view note = in.text();
  SpawnJob job;
  if (!in.ok() || stopping_ || (as_owner && !read_as(in, key, job))) return;
  if (auto it = by_key_.find(key); it != by_key_.end()) {
    if (it->second->committed) tell_end(*it->second);
    return;
  }
  Process* const host = key.session() ? host_of(key) : nullptr;
  auto process = std::make_unique<Process>();
  process->key = key;
  process->note = note;
  process->tried_ns = now_ns_;
  process->enqueued = enqueued;
  ++living_;
  if (key.session()) ++sessions_;
  bool noteable = process->note.size() <= spool_.note_max();
  std::string refused = noteable ? spool_.reserve(*process) : "its note is too long";
  if (refused.empty() && key.session()) refused = refuses_session(host, job);
  const bool no_permit = owners_ != nullptr && !as_owner;
  if (const core::Owner* const owner = job.owner()) process->user = owner->uid;
  Process& added = *process;
  by_key_[key] = process.get();
  processes_[added.entry] = std::move(process);
  if (auto fence = next_fences_.extract(key)) {
    added.fence = fence.mapped();
    fences_.emplace(added.fence->after_ns, added.entry);
  }
  if (refused.empty() && !no_permit) {
    if (!enqueued) spool_.intend(added);
    job.token = {options_.keeper, added.entry};
    if (!as_owner) job.order = in.rest();
    job.pod = {key.job, key.index, key.attempt};
    job.fresh = key.instance == 0 || key.session();
    job.record = enqueued ? &added : nullptr;
    (enqueued ? queue_ : jobs_).push_back(std::move(job));
    return;
  }
  if (refused.empty())
    refused = "this keeper starts nothing without a permit";
  else if (!key.session())
    refused.insert(0, "spool: ");
  if (noteable && !no_permit)
    return turn_away(added, refused);  // it may be ordered again once there is room
  added.exit_code = kExitCannotStart;
  added.error = refused;
  added.end_ns = now_ns_;
  end(added);
}

// Why a session does not start; empty: it has joined. With a permit, its command must be signed for
// its pod, and is started only once.
std::string Supervisor::refuses_session(Process* host, SpawnJob& job) {
  if (host == nullptr) return "its container does not run";
  job.session = true;
  if (host->cgroup != nullptr) job.joins_cgroup = host->cgroup->procs;
  job.joins_pid = host->start->pid;
  job.joins_cpus = host->cpus;
  if (!job.as) return "";
  const PermitPtr& permit = job.as->permit;
  if (permit == nullptr) return "its command is not signed";
  const PermitSession& signed_for = *permit->session;
  job.container &= static_cast<uint16_t>(~kSessionBit);
  if (signed_for.index != job.pod.index || signed_for.attempt != job.pod.attempt ||
      signed_for.container != job.container || permit->job.job != job.pod.job)
    return "its command is signed for another pod";
  if (host->joined.size() >= kSessionsMax) return "this container has had too many sessions";
  if (!host->joined.insert(signed_for.id).second) return "its command was started before";
  return "";
}

void Supervisor::remove(const Process& process) {
  by_key_.erase(process.key);
  processes_.erase(uint64_t{process.entry});
}

// An agent that does not know about sessions would mistake one for a container.
bool Supervisor::shown(const Key& key) const {
  return !key.session() || agent_version_ >= kSessions;
}

void Supervisor::tell_start(Process& process) {
  if (!greeted_ || process.start_reported || !shown(process.key)) return;
  process.start_reported = true;
  Frame frame(out_, Type::started);
  process.key.write(frame);
  ReportedStart::write(frame, reported(process.start, now_ns_));
  frame.text(core::node::cpu_list_text(process.cpus));
}

void Supervisor::tell_end(Process& process) {
  if (!greeted_ || !shown(process.key)) return;
  Ended end;
  end.pod = process.key.pod();
  end.step = process.key.step();
  end.entry = process.entry;
  if (process.start) end.start = {process.start->pid, ms_of(process.start->at_ns)};
  end.exit_code = process.exit_code;
  end.signal = process.signal;
  end.lost = process.lost;
  end.start_reported = process.start_reported;
  end.ended_at = ms_of(process.end_ns);
  end.error = process.error;
  end.note = process.note;
  end.out_of_memory = process.out_of_memory;
  end.unstarted = process.unstarted;
  end.fenced = process.fenced;
  end.used = process.used;
  Frame frame(out_, Type::ended);
  end.write(frame, ms_of(now_ns_));
  process.start_reported = true;
}

void Supervisor::send() {
  while (agent_fd_ >= 0 && out_done_ < out_.size()) {
    ssize_t size =
        ::send(agent_fd_, out_.data() + out_done_, out_.size() - out_done_, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;  // EPOLLOUT follows when there is room
    if (size < 0) return drop_agent();
    out_done_ += static_cast<size_t>(size);
  }
  out_.clear();
  out_done_ = 0;
}

}  // namespace muster::keeper
