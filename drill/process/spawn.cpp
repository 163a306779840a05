#include "drill/process/spawn.hpp"

#include "base/exec_exit.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace muster::cli::drill {
namespace {

constexpr Millis kSpawnMax = 10'000;  // until it has executed its program, or has ended
constexpr useconds_t kSpawnLookUs = 5'000;

// Our environment without muster's settings, which are meant for the user's cluster.
std::vector<std::string> clean_environment(const std::string& dir) {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    if (!text.starts_with("MUSTER_") && !text.starts_with("ETCD_") &&
        !text.starts_with("XDG_CONFIG_HOME=") && !text.starts_with("NOTIFY_SOCKET="))
      variables.emplace_back(text);
  }
  variables.push_back("XDG_CONFIG_HOME=" + dir + "/config");
  variables.push_back("MUSTER_SYSTEM_CONFIG=" + dir + "/config/none.yaml");
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string tail_of(const std::string& path, size_t bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<size_t>(file.tellg());
  const size_t wanted = std::min(size, bytes);
  file.seekg(static_cast<std::streamoff>(size - wanted));
  std::string text(wanted, '\0');
  file.read(text.data(), static_cast<std::streamsize>(wanted));
  return text;
}

Result<Process> spawn(const std::string& executable, const std::vector<std::string>& words,
                      const std::string& log, const std::string& dir,
                      const std::vector<std::string>& variables) {
  std::vector<std::string> command{executable};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<std::string> environment = clean_environment(dir);
  environment.insert(environment.end(), variables.begin(), variables.end());
  const std::vector<char*> argv = pointers(command), envp = pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return unavailable(std::string("cannot fork: ") + std::strerror(errno));
  if (pid == 0) {
    // Only async-signal-safe calls: other threads may hold any lock.
    setsid();  // so that Ctrl-C at the terminal does not reach it
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExitCannotStart);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    // A write beyond the file size limit then fails instead of killing the process.
    std::signal(SIGXFSZ, SIG_IGN);
    const int null = ::open("/dev/null", O_RDONLY);
    const int out = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (null < 0 || out < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
      _exit(kExitCannotStart);
    close_range(3, ~0u, 0);
    execve(executable.c_str(), argv.data(), envp.data());
    _exit(kExitCannotStart);
  }
  // Until the exec is done, /proc shows our own executable.
  for (const Millis until = boot_now() + kSpawnMax; boot_now() < until; usleep(kSpawnLookUs)) {
    const std::vector<std::string> now = command_of(pid);
    if (now.empty() || now == command) break;
  }
  auto process = Process::open(pid);
  if (!process) {
    waitpid(pid, nullptr, 0);
    return unavailable(executable + " " + words[0] +
                       " ended at once: " + one_line(tail_of(log, 300)));
  }
  return process;
}

bool reap(Daemon& daemon) {
  if (!daemon.process || waitpid(daemon.process->pid(), nullptr, WNOHANG) == 0) return false;
  daemon.process.reset();
  return true;
}

Status end_daemon(Daemon& daemon, int signal) {
  if (!daemon.process) return Nothing{};
  (void)daemon.process->send(signal);
  if (!daemon.process->wait_gone(kSpawnMax))
    return unavailable("process " + daemon.process->name() + " has not ended");
  waitpid(daemon.process->pid(), nullptr, 0);
  daemon.process.reset();
  return Nothing{};
}

}  // namespace muster::cli::drill
