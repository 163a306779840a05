#include "cli/ephemeral.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

// Pods may go on writing for as long as the keeper has not ended them.
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

[[noreturn]] void watch(int pipe, const std::string& path) {
  setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3 && null >= 0; ++fd) dup2(null, fd);
  if (dup2(pipe, 3) != 3 || chdir("/") != 0) _exit(1);
  close_range(4, ~0u, 0);
  char said;
  ssize_t n;
  while ((n = read(3, &said, 1)) < 0 && errno == EINTR) {
  }
  if (n == 0) remove_tree(path);
  _exit(0);
}

}  // namespace

Result<Ephemeral> Ephemeral::make() {
  const char* base = std::getenv("TMPDIR");
  std::string path =
      std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/muster-run-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Error{
        Errc::unavailable, "cannot make a directory " + path + ": " + std::strerror(errno), {}};
  }
  std::error_code error;
  path = std::filesystem::absolute(path, error).string();
  int ends[2];
  MUSTER_CHECK(pipe2(ends, O_CLOEXEC) == 0, errno);
  const pid_t watcher = fork();
  MUSTER_CHECK(watcher >= 0, errno);
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

// Of what nobody said that it should stay, nothing does.
Ephemeral::~Ephemeral() {
  if (pipe_ >= 0) remove();
}

void Ephemeral::keep() {
  if (pipe_ < 0) return;
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
