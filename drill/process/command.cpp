#include "drill/process/command.hpp"

#include "base/files/whole_write.hpp"
#include "client/terminal/text.hpp"
#include "drill/process/process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace muster::cli::drill {
namespace {

constexpr Millis kCommandLook = 10;     // between checks for interruption
constexpr Millis kReapMax = 20'000;     // after its input has ended
constexpr size_t kLineMax = 16u << 20;  // bytes
constexpr size_t kSaidMax = 400;        // bytes of a failed program's output to quote

}  // namespace

Result<Command> Command::start(std::vector<std::string> words) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return unavailable("cannot make a pipe");
  Fd in_read(in[0]), in_write(in[1]);
  if (pipe2(out, O_CLOEXEC) != 0) return unavailable("cannot make a pipe");
  Fd out_read(out[0]), out_write(out[1]);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in_read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out_write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, out_write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, pipe;
  sigemptyset(&none);
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return unavailable("cannot run " + words[0] + ": " + std::strerror(failed));
  Command command(pid);
  command.in_ = std::move(in_write);
  command.out_ = std::move(out_read);
  return command;
}

Command::Command(Command&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      read_(std::move(other.read_)) {}

Command::~Command() {
  if (pid_ < 0) return;
  end_input();
  for (const Millis until = boot_now() + kReapMax; boot_now() < until; usleep(1'000))
    if (ended()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Command::write(const std::string& text) {
  // Block SIGPIPE whatever its disposition: the caller may be a thread of any program.
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const bool good = write_whole(in_.get(), text);
  if (!good) {
    const timespec now{};
    while (sigtimedwait(&pipe, nullptr, &now) > 0) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return good;
}

// Reads once; false: end of output.
bool Command::more(Millis patience_ms) {
  pollfd ready{out_.get(), POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(patience_ms)) != 1) return true;
  char bytes[4'096];
  const ssize_t n = read(out_.get(), bytes, sizeof bytes);
  if (n < 0) return errno == EINTR;
  if (read_.size() < kLineMax) read_.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

std::optional<std::string> Command::line(Millis patience_ms, const GoOn& go_on) {
  for (const Millis until = boot_now() + patience_ms;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string text = read_.substr(0, end);
      read_.erase(0, end + 1);
      return text;
    }
    if (boot_now() >= until || !more(kCommandLook) || (go_on && !go_on())) break;
  }
  return std::nullopt;
}

// Its status from waitpid(), once it has ended.
std::optional<int> Command::ended() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

Result<std::string> Command::finish(Millis patience_ms, const GoOn& go_on) {
  end_input();
  std::optional<int> status;
  for (const Millis until = boot_now() + patience_ms; !status;) {
    if (!more(kCommandLook)) usleep(1'000);
    status = ended();
    if (status || (boot_now() < until && (!go_on || go_on()))) continue;
    kill(-pid_, SIGTERM);  // its session
    return unavailable("it has not ended within " + short_span(patience_ms));
  }
  // Do not wait for end of file: processes it left running may keep the pipe open forever.
  for (size_t before = read_.size() + 1; before != read_.size();) {
    before = read_.size();
    more(0);
  }
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return std::move(read_);
  const std::string said = one_line(read_.substr(read_.size() - std::min(read_.size(), kSaidMax)));
  const std::string how = WIFEXITED(*status) ? "exit code " + std::to_string(WEXITSTATUS(*status))
                                             : "signal " + std::to_string(WTERMSIG(*status));
  return unavailable(said.empty() ? how : said + " (" + how + ")");
}

Result<std::string> output_of(std::vector<std::string> words, const std::string& input,
                              Millis patience_ms, const Command::GoOn& go_on) {
  const std::string program = words.empty() ? "" : words[0];
  auto command = Command::start(std::move(words));
  if (!command) return command.error();
  if (!input.empty()) command->write(input);
  return command->finish(patience_ms, go_on);
}

}  // namespace muster::cli::drill
