#include "agent/run/keeper_client.hpp"

#include "agent/run/environment.hpp"
#include "base/log.hpp"
#include "base/peer/unix_address.hpp"
#include "base/process/spawn_clean.hpp"
#include "keeper/protocol.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr Millis kConnectMs = 5'000;
constexpr Millis kRetryMs = 3;
constexpr size_t kReadBytes = 64u << 10;
constexpr uint32_t kAnswersPings = 3;  // keepers from this version on
constexpr uint32_t kQueues = 4;        // keepers from this version on
constexpr uint32_t kReadsSecrets = 6;  // likewise
constexpr const char* kScratchSetting = "MUSTER_KEEPER_SCRATCH=";
constexpr const char* kOutputMaxSetting = "MUSTER_KEEPER_OUTPUT_MAX=";

keeper::Key to_wire(const ProcessKey& key) {
  return {key.pod.job, key.pod.index, key.pod.attempt, key.container, key.instance};
}

ProcessKey from_wire(const keeper::Key& key) {
  return {{key.job, key.index, key.attempt}, key.container, key.instance};
}

std::optional<core::StartOf<Millis>> read_start(Reader& in, Millis now) {
  const auto start = keeper::ReportedStart::read(in);
  if (!start) return std::nullopt;
  return core::StartOf<Millis>{start->pid, now - start->age_ms};
}

// Keepers before version 16 end the frame here.
core::node::CpuList read_cpus(Reader& in) {
  if (in.rest().empty()) return {};
  return core::node::parse_cpu_list(in.text()).value_or(core::node::CpuList());
}

// -1: nothing is listening.
kj::AutoCloseFd dial(int dir_fd) {
  kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto address = unix_address(dir_fd, keeper::kSocketName);
  if (!address || ::connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) < 0)
    return nullptr;
  return fd;
}

// Starts a keeper in its own session, so that it survives us. Returns 0 and `why` on failure.
pid_t start_keeper(const KeeperClient::Options& options, int dir_fd, std::string& why) {
  kj::AutoCloseFd log(
      openat(dir_fd, "keeper.log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (log.get() < 0) {
    why = "keeper.log: " + std::string(std::strerror(errno));
    return 0;
  }
  std::string path = options.keeper_path, work_dir = options.work_dir, cluster = options.cluster_id;
  std::array<char*, 4> argv{path.data(), work_dir.data(), cluster.data(), nullptr};
  std::vector<std::string> variables = keeper_environment();
  if (!options.scratch_dir.empty()) {
    std::erase_if(variables, [](const auto& one) { return one.starts_with(kScratchSetting); });
    variables.push_back(kScratchSetting + options.scratch_dir);
  }
  if (options.output_max_bytes) {
    std::erase_if(variables, [](const auto& one) { return one.starts_with(kOutputMaxSetting); });
    variables.push_back(kOutputMaxSetting + std::to_string(*options.output_max_bytes));
  }
  std::vector<char*> env;
  for (auto& variable : variables) env.push_back(variable.data());
  env.push_back(nullptr);
  int error = 0;
  const pid_t pid =
      spawn_clean(path.c_str(), argv.data(), env.data(), -1, log.get(), POSIX_SPAWN_SETSID, error);
  if (pid == 0) why = path + ": " + std::strerror(error);
  return pid;
}

// The last line of the keeper's log, for error messages.
std::string last_log_line(int dir_fd) {
  kj::AutoCloseFd log(openat(dir_fd, "keeper.log", O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> bytes;
  off_t size = lseek(log.get(), 0, SEEK_END);
  off_t from = std::max<off_t>(0, size - static_cast<off_t>(bytes.size()));
  ssize_t count = pread(log.get(), bytes.data(), bytes.size(), from);
  std::string text(bytes.data(), static_cast<size_t>(std::max<ssize_t>(0, count)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

class SocketKeeperClient final : public KeeperClient {
 public:
  SocketKeeperClient(kj::AutoCloseFd fd, pid_t child, Listener& listener)
      : fd_(kj::mv(fd)), child_(child), listener_(listener) {}
  ~SocketKeeperClient() noexcept(false) override {
    if (flush_due_) flush();
    *alive_ = false;
    reap_child();
  }

  // Says hello and reads the whole inventory; blocks until `deadline` at most. Returns the error,
  // or empty.
  std::string greet(const std::string& cluster_id, Millis deadline, Inventory& inventory);
  bool refused() const { return refused_; }
  Abilities abilities() const override { return abilities_; }

  // Hands the connection over to the event loop.
  void watch(kj::UnixEventPort& port) {
    observer_.emplace(port, fd_, kj::UnixEventPort::FdObserver::OBSERVE_READ_WRITE);
    kj::Promise<void> reading = kj::evalLater([this]() { return read(); });
    reading_ = reading.eagerlyEvaluate(nullptr);
    flush();
  }

  core::node::Trouble check() override {
    if (version_ < kAnswersPings) return {};
    core::node::Trouble trouble = pulse_.trouble();
    pulse_.asked();
    if (out_.empty()) ping();  // else it still has frames to read
    flush();
    return trouble;
  }
  kj::Promise<void> settled() override {
    if (version_ < kAnswersPings || gone_) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    unsettled_.push_back({kj::mv(paf.fulfiller), pinging_});
    ping();
    flush();
    return kj::mv(paf.promise);
  }
  void spawn(std::vector<SpawnOrder> orders) override {
    for (const auto& order : orders) {
      if (order.fence_after_ms) {
        keeper::Frame frame(out_, keeper::Type::fence);
        to_wire(order.key).write(frame);
        frame.num(int64_t{*order.fence_after_ms}).num(int64_t{order.fence_grace_ms});
      }
      if (order.permit) {
        order_as_owner(order);
        continue;
      }
      keeper::Frame frame(out_, order.queued ? keeper::Type::enqueue : keeper::Type::spawn);
      to_wire(order.key).write(frame);
      frame.text(order.note).text(order.cwd).text(order.stdout_path).text(order.stderr_path);
      if (order.words.empty())
        core::node::write_words(frame, order.argv, order.env);
      else
        frame.written(order.words);
      frame.num(order.memory_limit_bytes.value_or(0)).num(order.cpu_limit_millis.value_or(0));
      frame.num(uint8_t{order.contained}).num(int64_t{order.not_after.value_or(0)});
      frame.num(static_cast<uint32_t>(order.secrets.size()));
      for (const auto& secret : order.secrets)
        frame.text(secret.variable).text(secret.path).num(uint8_t{secret.optional});
      frame.num(static_cast<uint8_t>((order.reads ? keeper::kReadsInput : 0) |
                                     (order.terminal ? keeper::kReadsTerminal : 0)));
      frame.text(order.space);
      frame.num(uint8_t{order.no_new_privileges}).num(order.dropped_capabilities);
      frame.text(order.settings).num(order.cpus);
    }
    flush_soon();
  }
  void set_room(uint32_t count) override {
    { keeper::Frame(out_, keeper::Type::room).num(count); }
    flush();
  }
  void contact(Millis at) override {
    if (!abilities_.fences) return;
    { keeper::Frame(out_, keeper::Type::contact).num(int64_t{at}); }
    flush();
  }
  void withdraw(const ProcessKey& what) override {
    {
      keeper::Frame frame(out_, keeper::Type::withdraw);
      to_wire(what).write(frame);
    }
    flush();
  }
  void kill(const ProcessKey& what, Millis grace_ms) override {
    {
      keeper::Frame frame(out_, keeper::Type::kill);
      to_wire(what).write(frame);
      frame.num(int64_t{grace_ms});
    }
    flush();
  }
  void signal(const ProcessKey& what, int number, bool first_only) override {
    {
      keeper::Frame frame(out_, keeper::Type::signal);
      to_wire(what).write(frame);
      frame.num(static_cast<uint8_t>(number)).num(uint8_t{first_only});
    }
    flush();
  }
  void forget(const std::vector<uint64_t>& entries) override {
    for (uint64_t entry : entries) keeper::Frame(out_, keeper::Type::forget).num(entry);
    flush_soon();
  }
  void write(const ProcessKey& what, uint64_t offset, std::string_view data, bool eof) override {
    {
      keeper::Frame frame(out_, keeper::Type::input);
      to_wire(what).write(frame);
      frame.num(offset).num(uint8_t{eof}).text(data);
    }
    flush();
  }
  void release(const std::vector<PodId>& pods) override { tell(keeper::Type::release, pods); }
  void keep(const std::vector<PodId>& pods) override { tell(keeper::Type::keep, pods); }
  void end_all() override {
    { const keeper::Frame whole(out_, keeper::Type::end_all); }
    flush();
  }

 private:
  void tell(keeper::Type type, const std::vector<PodId>& pods) {
    {
      keeper::Frame frame(out_, type);
      frame.num(static_cast<uint32_t>(pods.size()));
      for (const PodId pod : pods) keeper::write_pod(frame, pod);
    }
    flush();
  }
  void order_as_owner(const SpawnOrder& order);
  uint64_t id_of(const core::node::SignedPermitPtr& permit);
  kj::Promise<void> read();
  void ping() {
    { keeper::Frame(out_, keeper::Type::ping); }
    pinging_ = true;
  }
  void take_settled();
  void take_frames();
  void take_greeting(Inventory& inventory);
  void deliver();
  void flush();
  // At the end of this turn of the loop, so that orders that follow go along.
  void flush_soon() {
    if (std::exchange(flush_due_, true)) return;
    kj::evalLast([this, alive = alive_]() {
      if (*alive && std::exchange(flush_due_, false)) flush();
    }).detach([](kj::Exception&&) {});
  }
  void gone(const std::string& why);
  void reap_child() {
    // A keeper that outlives us is reaped by its new parent; one that has exited must not remain
    // our zombie.
    if (child_ > 0 && waitpid(child_, nullptr, WNOHANG) == child_) child_ = 0;
  }

  kj::AutoCloseFd fd_;
  pid_t child_;  // the keeper, if we started it
  Listener& listener_;
  std::optional<kj::UnixEventPort::FdObserver> observer_;
  std::vector<char> bytes_ = std::vector<char>(kReadBytes);  // just received
  keeper::FrameBuffer in_;
  std::string out_;
  size_t out_done_ = 0;
  bool flush_due_ = false;
  bool greeted_ = false, refused_ = false, gone_ = false;
  std::string gone_why_;

  // Passed to the listener in a separate turn, so that it may destroy us from there.
  std::vector<core::node::ProcessStart> started_;
  std::vector<keeper::Ended> ended_;
  std::vector<InputTaken> taken_;
  std::vector<VolumeFull> full_;
  bool delivering_ = false;
  size_t last_started_ = 0, last_ended_ = 0;  // how many were passed
  // A caller that waits for the pong of a ping sent since its call, and whether an earlier ping was
  // unanswered then.
  struct Unsettled {
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
    bool pinged_before = false;
  };
  std::vector<Unsettled> unsettled_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> settled_;
  bool pinging_ = false;
  // The permits that this connection has carried, and their ids. They are held, so that a pointer
  // identifies one permit only.
  std::map<core::node::SignedPermitPtr, uint64_t> permits_;
  uint64_t last_permit_ = 0;
  uint32_t version_ = keeper::kVersion;
  Abilities abilities_;
  core::node::Pulse pulse_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  kj::Promise<void> reading_ = kj::READY_NOW;
  kj::Promise<void> writing_ = kj::READY_NOW;
  bool awaiting_room_ = false;
};

// The keeper keeps the same number; beyond that, both start over.
uint64_t SocketKeeperClient::id_of(const core::node::SignedPermitPtr& permit) {
  if (const auto known = permits_.find(permit); known != permits_.end()) return known->second;
  if (permits_.size() >= keeper::kPermitsMax) permits_.clear();
  const uint64_t id = ++last_permit_;
  permits_.emplace(permit, id);
  keeper::Frame(out_, keeper::Type::permit)
      .num(id)
      .text(permit->bytes)
      .text(permit->signature)
      .text(permit->job);
  return id;
}

void SocketKeeperClient::order_as_owner(const SpawnOrder& order) {
  const uint64_t permit = id_of(order.permit);
  keeper::Frame frame(out_, order.queued ? keeper::Type::enqueue_as : keeper::Type::spawn_as);
  to_wire(order.key).write(frame);
  frame.text(order.note).num(permit);
  frame.num(order.memory_limit_bytes.value_or(0)).num(order.cpu_limit_millis.value_or(0));
  frame.num(uint8_t{order.contained}).num(int64_t{order.not_after.value_or(0)});
  frame.num(static_cast<uint32_t>(order.devices.size()));
  for (const auto& [name, numbers] : order.devices) {
    frame.text(name).num(static_cast<uint32_t>(numbers.size()));
    for (const uint32_t number : numbers) frame.num(number);
  }
  frame.text(order.run).text(order.mpi.leader_address).text(order.mpi.iface);
  frame.num(uint8_t{order.private_tmp}).num(order.cpus);
}

std::string SocketKeeperClient::greet(const std::string& cluster_id, Millis deadline,
                                      Inventory& inventory) {
  inventory = {};
  keeper::Frame(out_, keeper::Type::hello).num(version_).text(cluster_id);
  flush();
  while (!greeted_ && !gone_) {
    Millis left = deadline - boot_now();
    if (left <= 0) return "the keeper does not answer";
    pollfd poll_fd{fd_.get(), static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    poll(&poll_fd, 1, static_cast<int>(left));
    flush();
    ssize_t size = recv(fd_, bytes_.data(), bytes_.size(), 0);
    if (size == 0) return "the keeper has exited";
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size < 0) return std::string("recv: ") + std::strerror(errno);
    in_.append(bytes_.data(), static_cast<size_t>(size));
    take_greeting(inventory);
    if (refused_ && version_ > keeper::kOldestVersion) {  // an older keeper: try its version
      refused_ = gone_ = false;
      gone_why_.clear();
      --version_;
      keeper::Frame(out_, keeper::Type::hello).num(version_).text(cluster_id);
      flush();
    }
  }
  return gone_ ? gone_why_ : "";
}

void SocketKeeperClient::take_greeting(Inventory& inventory) {
  keeper::Type type{};
  std::string_view payload;
  while (!greeted_ && in_.next(type, payload)) {
    Reader in(payload);
    if (type == keeper::Type::refused) {
      refused_ = true;
      gone(std::string(in.text()));
      return;
    } else if (type == keeper::Type::welcome) {
      in.num<uint32_t>();
      auto can = in.num<uint8_t>();  // 0 from a keeper of version 1
      abilities_ = {(can & keeper::kCanCgroup) != 0,
                    (can & keeper::kCanLimitMemory) != 0,
                    (can & keeper::kCanLimitCpu) != 0,
                    in.rest().empty() ? "" : std::string(in.text()),
                    version_ >= kQueues,
                    (can & keeper::kCanRunAs) != 0,
                    version_ >= kReadsSecrets,
                    version_ >= keeper::kSessions,
                    version_ >= keeper::kInput,
                    version_ >= keeper::kFences,
                    version_ >= keeper::kSpaces,
                    version_ >= keeper::kConfines,
                    version_ >= keeper::kFiles,
                    version_ >= keeper::kBinds,
                    version_ >= keeper::kHooks,
                    version_ >= keeper::kTemplates,
                    version_ >= keeper::kSpaces && (can & keeper::kCanMount) != 0};
      if (abilities_.spaces) {
        abilities_.scratch = in.text();
        abilities_.no_scratch = in.text();
        abilities_.no_mounts = in.text();
      }
      if (abilities_.confines) abilities_.memory = in.text();
      if (version_ >= keeper::kSaysVersion) abilities_.version = in.text();
    } else if (type == keeper::Type::living) {
      Inventory::Living living;
      living.key = from_wire(keeper::Key::read(in));
      living.start = read_start(in, boot_now());
      living.killing = in.num<uint8_t>() != 0;
      living.note = in.text();
      living.queued = !in.rest().empty() && in.num<uint8_t>() != 0;
      living.cpus = read_cpus(in);
      inventory.living.push_back(std::move(living));
    } else if (type == keeper::Type::ended) {
      inventory.ended.push_back(keeper::Ended::read(in, boot_now()));
    } else if (type == keeper::Type::inventory_done) {
      greeted_ = true;
    }
  }
}

kj::Promise<void> SocketKeeperClient::read() {
  while (!gone_) {
    ssize_t size = recv(fd_, bytes_.data(), bytes_.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0) {
      gone(size == 0 ? "the keeper has exited" : std::string("recv: ") + std::strerror(errno));
      break;
    }
    in_.append(bytes_.data(), static_cast<size_t>(size));
    take_frames();
  }
  take_frames();  // also those that arrived right after the inventory
  deliver();
  if (gone_) return kj::READY_NOW;
  return observer_->whenBecomesReadable().then([this]() { return read(); });
}

void SocketKeeperClient::take_frames() {
  keeper::Type type{};
  std::string_view payload;
  // Lists are about as long as the last ones.
  if (started_.empty()) started_.reserve(last_started_);
  if (ended_.empty()) ended_.reserve(last_ended_);
  const Millis now = boot_now();
  while (in_.next(type, payload)) {
    Reader in(payload);
    if (type == keeper::Type::started) {
      const auto key = keeper::Key::read(in);
      if (const auto start = read_start(in, now))
        started_.push_back({key.pod(), key.step(), start->pid, start->at, read_cpus(in)});
    } else if (type == keeper::Type::ended) {
      keeper::Ended end = keeper::Ended::read(in, now);
      // The end of a short process also carries its start.
      if (!end.start_reported && end.start)
        started_.push_back({end.pod, end.step, end.start->pid, end.start->at});
      ended_.push_back(std::move(end));
    } else if (type == keeper::Type::taken) {
      InputTaken taken{from_wire(keeper::Key::read(in))};
      taken.taken = in.num<uint64_t>();
      taken.closed = in.num<uint8_t>() != 0;
      if (in.ok()) taken_.push_back(taken);
    } else if (type == keeper::Type::full) {
      VolumeFull full{keeper::read_pod(in)};
      full.volume = in.text();
      full.used = in.num<uint64_t>();
      full.limit = in.num<uint64_t>();
      if (in.ok()) full_.push_back(std::move(full));
    } else if (type == keeper::Type::pong) {
      pulse_.answered(std::string(in.text()));
      pinging_ = false;
      take_settled();
    }
  }
  if (in_.broken()) gone("the keeper sent an invalid frame");
}

// The keeper answers after it has reported all ends. A pong may belong to an earlier ping.
void SocketKeeperClient::take_settled() {
  std::vector<Unsettled> later;
  for (auto& one : std::exchange(unsettled_, {})) {
    if (one.pinged_before)
      later.push_back({kj::mv(one.fulfiller), false});
    else
      settled_.push_back(kj::mv(one.fulfiller));
  }
  unsettled_ = std::move(later);
  if (unsettled_.empty()) return;
  ping();  // pings that arrive together are answered once
  flush();
}

void SocketKeeperClient::deliver() {
  if (delivering_ || (started_.empty() && ended_.empty() && taken_.empty() && full_.empty() &&
                      settled_.empty() && !gone_))
    return;
  delivering_ = true;
  kj::evalLater([this, alive = alive_]() {
    if (!*alive) return;
    delivering_ = false;
    if (auto started = std::exchange(started_, {}); !started.empty()) {
      last_started_ = started.size();
      listener_.on_started(std::move(started));
    }
    if (!*alive) return;
    if (auto ended = std::exchange(ended_, {}); !ended.empty()) {
      last_ended_ = ended.size();
      listener_.on_ended(std::move(ended));
    }
    if (!*alive) return;
    for (auto& one : std::exchange(settled_, {})) one->fulfill();
    if (auto taken = std::exchange(taken_, {}); !taken.empty()) {
      listener_.on_taken(std::move(taken));
    }
    if (!*alive) return;
    if (auto full = std::exchange(full_, {}); !full.empty()) listener_.on_full(std::move(full));
    if (!*alive || !gone_ || gone_why_.empty()) return;
    reap_child();
    listener_.on_keeper_gone(std::exchange(gone_why_, {}));
  }).detach([](kj::Exception&& exception) {
    log::error("keeper client: a listener threw: {}", exception.getDescription().cStr());
  });
}

void SocketKeeperClient::flush() {
  while (out_done_ < out_.size() && !gone_) {
    ssize_t size = send(fd_, out_.data() + out_done_, out_.size() - out_done_, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      if (awaiting_room_ || !observer_) return;
      awaiting_room_ = true;
      writing_ = observer_->whenBecomesWritable()
                     .then([this]() {
                       awaiting_room_ = false;
                       kj::evalLater([this, alive = alive_]() {
                         if (*alive) flush();
                       }).detach([](kj::Exception&&) {});
                     })
                     .eagerlyEvaluate(nullptr);
      return;
    }
    if (size < 0) {
      // Read what it sent before; the end of file then reports the loss.
      if (!observer_) gone(std::string("send: ") + std::strerror(errno));
      break;
    }
    out_done_ += static_cast<size_t>(size);
  }
  out_.clear();
  out_done_ = 0;
}

void SocketKeeperClient::gone(const std::string& why) {
  gone_ = true;
  if (gone_why_.empty()) gone_why_ = why;
}

}  // namespace

Result<kj::Own<KeeperClient>> KeeperClient::connect(kj::UnixEventPort& port, Options options,
                                                    Listener& listener, Inventory& inventory) {
  Millis deadline = boot_now() + kConnectMs;
  auto unavailable = [](std::string why) { return Error{Errc::unavailable, "keeper: " + why, {}}; };
  std::string path = options.work_dir + "/keeper";
  if (mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
    return unavailable(path + ": " + std::strerror(errno));
  }
  // A root keeper, started by the system, lets us reach its socket, but not read its directory.
  struct stat owner {};
  const bool of_root = lstat(path.c_str(), &owner) == 0 && owner.st_uid == 0 && geteuid() != 0;
  kj::AutoCloseFd dir(
      open(path.c_str(), (of_root ? O_PATH : O_RDONLY) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (dir.get() < 0) return unavailable(path + ": " + std::strerror(errno));

  pid_t child = 0;  // the keeper we started, until it has exited
  std::string why = "nobody listens";
  while (true) {
    if (kj::AutoCloseFd fd = dial(dir); fd.get() >= 0) {
      auto client = kj::heap<SocketKeeperClient>(kj::mv(fd), child, listener);
      why = client->greet(options.cluster_id, deadline, inventory);
      if (why.empty()) {
        client->watch(port);
        return kj::Own<KeeperClient>(kj::mv(client));
      }
      if (client->refused()) return unavailable(why);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, WNOHANG) != 0) {
      child = 0;
      int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      if (code == keeper::kExitDamaged) return Error{Errc::invalid, last_log_line(dir), {}};
      if (code == keeper::kExitFailed) return unavailable(last_log_line(dir));
      why = code == keeper::kExitLocked
                ? "another keeper has locked the work-dir and does not respond"
                : "it exited immediately: " + last_log_line(dir);
    } else if (child == 0 && of_root) {
      why =
          "the root keeper, which runs pods as their owners, is not running: nothing listens on " +
          path;
      if (options.at_once) return unavailable(why);
    } else if (child == 0) {
      // A keeper that finds the lock taken exits, so there are never two.
      child = start_keeper(options, dir, why);
      if (child == 0) return unavailable(why);
    }
    if (boot_now() >= deadline) return unavailable(why);
    poll(nullptr, 0, static_cast<int>(kRetryMs));
  }
}

}  // namespace muster::agent
