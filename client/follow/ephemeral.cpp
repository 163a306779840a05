#include "client/follow/ephemeral.hpp"

#include "client/terminal/starved.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

constexpr char kPrefix[] = "muster-run-";
constexpr char kKeepMark[] = "/keep";  // this file exists: --keep was given
constexpr auto kKeepDead = std::chrono::hours(24);
constexpr size_t kDeadMax = 100;  // directories checked per run

// Retries, because pods may keep writing until the keeper has killed them.
void remove_tree(const std::string& path) {
  constexpr int kTries = 300;
  constexpr useconds_t kPauseUs = 100'000;
  for (int i = 0; i < kTries; ++i) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (!error && !std::filesystem::exists(path, error)) return;
    usleep(kPauseUs);
  }
}

using std::chrono::file_clock;

std::vector<std::filesystem::path> entries_of(const std::string& dir) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error))
    found.push_back(at->path());
  return found;
}

// When the files of a run last changed: its own, its journal's, its agent's.
file_clock::time_point last_change(const std::string& path) {
  std::error_code error;
  file_clock::time_point newest = std::filesystem::last_write_time(path, error);
  for (const char* below : {"", "/db", "/agent"}) {
    for (const auto& entry : entries_of(path + below)) {
      const auto time = std::filesystem::last_write_time(entry, error);
      if (!error) newest = std::max(newest, time);
    }
  }
  return newest;
}

bool is_old(const std::string& path) {
  return last_change(path) + kKeepDead < file_clock::now();
}

// Whether this is our own directory and not a link. If so, nobody else can put anything into it or,
// as /tmp is sticky, replace it.
bool is_ours(const std::string& path) {
  struct stat st {};
  return lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

// Removes a directory only if it has not changed for a day and its run is dead: a live run holds
// its journal's lock. Never takes the lock of a younger directory, or a run that is just starting,
// even our own, would find its directory in use.
void remove_if_dead(const std::string& path) {
  if (!is_old(path)) return;
  const int dir = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0) return;
  struct stat st {};
  const bool ours = fstat(dir, &st) == 0 && st.st_uid == geteuid();
  const int lock = ours ? openat(dir, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
  const bool unlocked = ours && flock(dir, LOCK_EX | LOCK_NB) == 0;
  const bool dead = unlocked && (lock < 0 ? errno == ENOENT : flock(lock, LOCK_EX | LOCK_NB) == 0);
  std::error_code error;
  const bool wanted = access((path + kKeepMark).c_str(), F_OK) == 0;
  if (dead && !wanted && is_old(path)) std::filesystem::remove_all(path, error);
  if (lock >= 0) close(lock);
  close(dir);
}

// Skips other users' directories, so neither their contents nor their number can keep ours from
// being removed.
void remove_dead(const std::string& base) {
  size_t looked_at = 0;
  for (const auto& entry : entries_of(base)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(kPrefix) && name.size() == sizeof kPrefix - 1 + 6 &&
        is_ours(entry.string()) && ++looked_at <= kDeadMax)
      remove_if_dead(entry.string());
  }
}

[[noreturn]] void watch(int pipe, const std::string& path) {
  setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3 && null >= 0; ++fd) dup2(null, fd);
  if (dup2(pipe, 3) != 3 || chdir("/") != 0) _exit(1);
  close_range(4, ~0u, 0);
  remove_dead(std::filesystem::path(path).parent_path().string());
  char said;
  ssize_t n;
  while ((n = read(3, &said, 1)) < 0 && errno == EINTR) {
  }
  if (n == 0) remove_tree(path);
  _exit(0);
}

}  // namespace

Result<Ephemeral> Ephemeral::make(const std::string& prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string path =
      std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/" + prefix + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Error{
        Errc::unavailable, "cannot make a directory " + path + ": " + std::strerror(errno), {}};
  }
  std::error_code error;
  path = std::filesystem::absolute(path, error).string();
  int ends[2];
  auto failed = [&path](int why) {
    rmdir(path.c_str());
    return Error{Errc::unavailable, want_text(why), {}};
  };
  if (pipe2(ends, O_CLOEXEC) != 0) return failed(errno);
  const pid_t watcher = fork();
  if (watcher < 0) {
    const int why = errno;
    for (const int end : ends) close(end);
    return failed(why);
  }
  if (watcher == 0) {
    close(ends[1]);
    watch(ends[0], path);
  }
  close(ends[0]);
  return Ephemeral(std::move(path), ends[1], watcher);
}

Ephemeral::Ephemeral(Ephemeral&& other) noexcept
    : path_(std::move(other.path_)),
      pipe_(std::exchange(other.pipe_, -1)),
      watcher_(other.watcher_) {}

// Without keep(), remove everything.
Ephemeral::~Ephemeral() {
  if (pipe_ >= 0) remove();
}

void Ephemeral::keep(bool for_good) {
  if (pipe_ < 0) return;
  if (for_good) close(open((path_ + kKeepMark).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const char done = 'd';
  while (write(pipe_, &done, 1) < 0 && errno == EINTR) {
  }
  close(std::exchange(pipe_, -1));
  waitpid(watcher_, nullptr, 0);
}

void Ephemeral::remove() {
  if (pipe_ < 0) return;
  close(std::exchange(pipe_, -1));
  waitpid(watcher_, nullptr, 0);
}

}  // namespace muster::cli
