#include "keeper/start/terminal.hpp"

#include "base/exec_exit.hpp"
#include "base/fd.hpp"
#include "base/terminal_input.hpp"
#include "keeper/start/last_step.hpp"
#include "keeper/start/search_path.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kPendingMax = 64u << 10;  // typed, but not yet accepted by the terminal
constexpr size_t kPartMax = 16u << 10;
// After the command's end: more than a terminal holds, so what comes later is not the command's.
constexpr size_t kLastMax = 256u << 10;
constexpr int kNoTerminal = kExitCannotStart;

class Terminal {
 public:
  explicit Terminal(char** command) : command_(command) {}

  int run() {
    if (!prepare()) {
      std::fprintf(stderr, "muster: cannot open a terminal: %s\n", std::strerror(errno));
      return kNoTerminal;
    }
    while (true) {
      const bool reads = input_open_ && pending_.size() < kPendingMax;
      const auto wanted = static_cast<short>(pending_.empty() ? POLLIN : POLLIN | POLLOUT);
      std::array<pollfd, 3> fds{pollfd{signals_.get(), POLLIN, 0},
                                pollfd{reads ? STDIN_FILENO : -1, POLLIN, 0},
                                pollfd{master_.get(), wanted, 0}};
      if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return kNoTerminal;
      if (fds[1].revents != 0) read_input();
      if ((fds[2].revents & POLLIN) != 0) copy_output(kPartMax);
      if ((fds[2].revents & POLLOUT) != 0) type_pending();
      if (fds[0].revents != 0) take_signals();
      if (exit_code_ >= 0) {
        copy_output(kLastMax);
        return exit_code_;
      }
    }
  }

 private:
  bool prepare() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGCHLD, SIGTERM, SIGHUP, SIGTTOU}) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    master_ = Fd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (!signals_ || !master_ || unlockpt(master_.get()) != 0) return false;
    // Not by its path, which might not exist here. It stays open, so that the terminal is not hung
    // up while nobody else has it open.
    slave_ = Fd(ioctl(master_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave_ || ioctl(slave_.get(), TIOCSCTTY, 0) != 0) return false;
    termios modes{};
    if (tcgetattr(slave_.get(), &modes) == 0) {
      modes.c_iflag |= IUTF8;
      tcsetattr(slave_.get(), TCSANOW, &modes);
    }
    return true;
  }

  void read_input() {
    char bytes[kPartMax];
    const ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size <= 0) return hang_up();
    input_.append(bytes, static_cast<size_t>(size));
    TerminalInput frame;
    while (true) {
      const auto found = TerminalInput::read(input_, frame);
      if (found == TerminalInput::Found::more) break;
      if (found == TerminalInput::Found::broken) {
        std::fputs("muster: the terminal's input is malformed\n", stderr);
        return hang_up();
      }
      if (frame.type == TerminalInput::Type::data)
        pending_ += frame.bytes;
      else
        resize(frame);
      if (frame.type == TerminalInput::Type::open && child_ == 0) start(frame.bytes);
    }
    type_pending();
  }

  void resize(const TerminalInput& frame) {
    winsize size{};
    size.ws_row = frame.rows;
    size.ws_col = frame.columns;
    ioctl(master_.get(), TIOCSWINSZ, &size);
  }

  // At the first frame, so that the command sees the window's size.
  void start(const std::string& term) {
    if (!term.empty()) setenv("TERM", term.c_str(), 1);
    child_ = fork();
    if (child_ < 0) {
      std::fprintf(stderr, "muster: fork: %s\n", std::strerror(errno));
      exit_code_ = kNoTerminal;
      return;
    }
    if (child_ == 0) become_command();
    setpgid(child_, child_);  // either of us may be first
  }

  [[noreturn]] void become_command() {
    const int slave = slave_.get();
    setpgid(0, 0);
    tcsetpgrp(slave, getpid());
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(slave, fd);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const char* const path = std::getenv("PATH");
    const StartFailure failure = LastStep().execute(
        programs_named(command_[0], path != nullptr ? path : kDefaultPath), command_, environ);
    char why[512];
    failure.describe(why, sizeof why);
    std::fprintf(stderr, "muster: %s\n", why);
    _exit(exit_of_exec(failure.error));
  }

  void type_pending() {
    while (!pending_.empty()) {
      const ssize_t size = write(master_.get(), pending_.data(), pending_.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return;
      pending_.erase(0, static_cast<size_t>(size));
    }
  }

  void copy_output(size_t most) {
    char bytes[kPartMax];
    for (size_t copied = 0; copied < most;) {
      const ssize_t size = read(master_.get(), bytes, sizeof bytes);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return;
      copied += static_cast<size_t>(size);
      // Output that does not fit on a full disk is lost.
      for (std::string_view rest(bytes, static_cast<size_t>(size)); !rest.empty();) {
        const ssize_t written = write(STDOUT_FILENO, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) break;
        rest.remove_prefix(static_cast<size_t>(written));
      }
    }
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info)
      if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) hang_up();
    int status = 0;
    pid_t pid = 0;
    while (child_ > 0 && (pid = waitpid(child_, &status, WNOHANG | WUNTRACED)) > 0) {
      if (WIFSTOPPED(status)) {  // nobody else would continue it
        kill(-child_, SIGCONT);
        continue;
      }
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return;
    }
  }

  // The user or the session is gone. A shell ignores SIGTERM, other programs may ignore SIGHUP.
  void hang_up() {
    input_open_ = false;
    if (child_ <= 0) {
      exit_code_ = 128 + SIGHUP;
      return;
    }
    for (const int signal : {SIGHUP, SIGTERM, SIGCONT}) {
      const pid_t front = tcgetpgrp(slave_.get());
      if (front > 0 && front != child_) kill(-front, signal);
      kill(-child_, signal);
    }
  }

  char** const command_;
  Fd signals_{}, master_{}, slave_{};
  std::string input_, pending_;
  bool input_open_ = true;
  pid_t child_ = 0;
  int exit_code_ = -1;  // unknown
};

}  // namespace

int terminal_main(char** argv) {
  prctl(PR_SET_NAME, kTerminalName);
  if (argv[1] == nullptr) {
    std::fprintf(stderr, "usage: %s COMMAND ARGUMENT...\n", kTerminalName);
    return 2;
  }
  return Terminal(argv + 1).run();
}

}  // namespace muster::keeper
