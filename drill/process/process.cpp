#include "drill/process/process.hpp"

#include "client/terminal/json.hpp"
#include "trust/tls/certificates.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::cli::drill {
namespace {

constexpr useconds_t kLookUs = 2'000;

std::string proc(pid_t pid, const char* what) {
  return "/proc/" + std::to_string(pid) + "/" + what;
}

}  // namespace

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<ProcessFacts> facts_of(pid_t pid) {
  const std::string stat = text_of_file(proc(pid, "stat"));
  const size_t name_end = stat.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream in(stat.substr(name_end + 1));
  std::vector<std::string> fields;  // from the third on
  for (std::string word; in >> word;) fields.push_back(word);
  constexpr size_t kParent = 4 - 3, kStart = 22 - 3;  // proc(5)
  if (fields.size() <= kStart) return std::nullopt;
  ProcessFacts facts;
  facts.state = fields[0][0];
  facts.parent = static_cast<pid_t>(std::strtol(fields[kParent].c_str(), nullptr, 10));
  facts.start_ticks = std::strtoull(fields[kStart].c_str(), nullptr, 10);
  return facts;
}

std::vector<std::string> command_of(pid_t pid) {
  std::vector<std::string> words;
  std::istringstream in(text_of_file(proc(pid, "cmdline")));
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (read.ec == std::errc{} && read.ptr == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

Result<Process> Process::open(pid_t pid) {
  const Error none{Errc::not_found, "there is no process " + std::to_string(pid), {}};
  if (pid <= 1) return none;
  Process process(Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), pid);
  if (!process.fd_) return none;
  const auto facts = facts_of(pid);
  struct stat st {};
  std::error_code error;
  process.executable_ = std::filesystem::read_symlink(proc(pid, "exe"), error).string();
  const bool owned = stat(proc(pid, "").c_str(), &st) == 0;
  // It is still alive, so what was read belongs to it.
  if (!facts || process.gone()) return none;
  if (error || !owned)
    return Error{Errc::unavailable,
                 "cannot tell what process " + std::to_string(pid) + " is: " + error.message(),
                 {}};
  constexpr std::string_view kDeleted = " (deleted)";  // its file was replaced
  if (process.executable_.ends_with(kDeleted))
    process.executable_.resize(process.executable_.size() - kDeleted.size());
  process.start_ticks_ = facts->start_ticks;
  process.owner_ = st.st_uid;
  return process;
}

std::string Process::name() const {
  return "pid " + std::to_string(pid_) + ", started at tick " + std::to_string(start_ticks_);
}

Status Process::send(int signal) const {
  if (syscall(SYS_pidfd_send_signal, fd_.get(), signal, nullptr, 0) == 0) return Nothing{};
  return Error{Errc::unavailable,
               "cannot signal process " + std::to_string(pid_) + ": " + std::strerror(errno),
               {}};
}

bool Process::gone() const {
  pollfd ended{fd_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

char Process::state() const {
  const auto facts = facts_of(pid_);
  return gone() || !facts ? 0 : facts->state;
}

bool Process::wait_gone(Millis patience_ms) const {
  pollfd ended{fd_.get(), POLLIN, 0};
  const Millis until = boot_now() + patience_ms;
  for (;;) {
    const Millis left = std::max<Millis>(until - boot_now(), 0);
    const int n = poll(&ended, 1, static_cast<int>(left));
    if (n == 1) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

// A thread may answer a request after the first one has stopped.
bool Process::wait_state(char state, Millis patience_ms) const {
  const auto reached = [this, state] {
    if (this->state() != state) return false;
    std::error_code error;
    for (std::filesystem::directory_iterator at(proc(pid_, "task"), error), end;
         !error && at != end; at.increment(error)) {
      const std::string id = at->path().filename();
      const auto thread = facts_of(static_cast<pid_t>(std::strtol(id.c_str(), nullptr, 10)));
      if (thread && thread->state != state) return false;
    }
    return true;
  };
  for (const Millis until = boot_now() + patience_ms; boot_now() < until; usleep(kLookUs))
    if (reached()) return true;
  return reached();
}

namespace {

// Starts a watcher process that calls `undo` when the other end of `pipe` is closed, also because
// we were killed. `undo` makes only async-signal-safe calls: other threads may hold any lock.
template <class Undo>
pid_t watch_over(Fd& pipe, const Undo& undo) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  pipe = Fd(ends[1]);
  const pid_t watcher = fork();
  if (watcher == 0) {
    setsid();  // so that Ctrl-C at the terminal does not reach it
    close(ends[1]);
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    undo();
    _exit(0);
  }
  close(ends[0]);
  return watcher;
}

}  // namespace

Frozen::Frozen(const Process& process) : process_(process) {
  watcher_ = watch_over(
      pipe_, [fd = process.fd_.get()] { syscall(SYS_pidfd_send_signal, fd, SIGCONT, nullptr, 0); });
  if (watcher_ > 0) (void)process_.send(SIGSTOP);
}

Frozen::~Frozen() {
  (void)process_.send(SIGCONT);
  pipe_ = Fd();
  if (watcher_ > 0) waitpid(watcher_, nullptr, 0);
}

Full::Full(const Process& process) {
  rlimit before{};
  if (prlimit(process.pid(), RLIMIT_FSIZE, nullptr, &before) != 0 || process.gone()) return;
  watcher_ = watch_over(pipe_, [fd = process.fd_.get(), pid = process.pid(), before] {
    // It is alive, so the pid is still that of the process that was limited.
    if (syscall(SYS_pidfd_send_signal, fd, 0, nullptr, 0) == 0)
      prlimit(pid, RLIMIT_FSIZE, &before, nullptr);
  });
  const rlimit none{0, before.rlim_max};
  if (watcher_ > 0 && prlimit(process.pid(), RLIMIT_FSIZE, &none, nullptr) == 0) return;
  pipe_ = Fd();
  if (watcher_ > 0) waitpid(watcher_, nullptr, 0);
  watcher_ = -1;
}

Full::~Full() {
  pipe_ = Fd();  // the watcher lifts the limit
  if (watcher_ > 0) waitpid(watcher_, nullptr, 0);
}

std::string digest_of(const std::string& path) {
  return tls::sha256_hex(text_of_file(path));
}

std::string digest_of(const Process& process) {
  return digest_of(proc(process.pid(), "exe"));
}

std::vector<Process> descendants(pid_t pid) {
  std::vector<pid_t> known{pid}, all = all_pids();
  std::vector<Process> found;
  for (bool more = true; more;) {
    more = false;
    for (pid_t one : all) {
      const auto facts = facts_of(one);
      if (!facts || std::find(known.begin(), known.end(), one) != known.end() ||
          std::find(known.begin(), known.end(), facts->parent) == known.end())
        continue;
      known.push_back(one);
      more = true;
      auto process = Process::open(one);
      // It was opened after its parent was read: make sure that it is the same process.
      if (process && process->start_ticks() == facts->start_ticks)
        found.push_back(std::move(*process));
    }
  }
  return found;
}

Result<Process> process_in_file(const std::string& path, const std::string& verb) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return Error{Errc::not_found, "--pid-file: there is no file " + path, {}};
  const std::string text = text_of_file(path);
  const Json json = read_json(text);
  const int64_t pid = json.is_object() ? number_at(json, {"pid"}) : std::atoll(text.c_str());
  if (pid <= 1)
    return invalid("--pid-file " + path +
                   ": has no pid; it must be a number or a coordinator's endpoints.json");
  auto process = Process::open(static_cast<pid_t>(pid));
  if (!process) return process.error();
  const std::vector<std::string> words = command_of(process->pid());
  const std::string program = std::filesystem::path(process->executable()).filename().string();
  if (program != "muster" || words.size() < 2 || words[1] != verb)
    return invalid("--pid-file " + path + ": process " + std::to_string(pid) + " is " +
                   process->executable() + ", not `muster " + verb + "`");
  if (geteuid() != 0 && process->owner() != geteuid())
    return invalid("--pid-file " + path + ": process " + std::to_string(pid) +
                   " belongs to another user (uid " + std::to_string(process->owner()) + ")");
  return process;
}

}  // namespace muster::cli::drill
