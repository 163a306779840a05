// muster dev: a coordinator and some agents on this machine, for as long as the command runs.
//
// They are real processes that are restarted when they end, so kill -9 shows the effect of a crash.
// At the end, the agents terminate their pods and leave, then the coordinator stops. Without
// --data-dir nothing is left behind; for what happens if the command itself is killed, see
// Ephemeral.
#include "cli/verbs/daemons/dev.hpp"

#include "base/exec_exit.hpp"
#include "base/fd.hpp"
#include "base/process/own_executable.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/follow/ephemeral.hpp"
#include "client/follow/signals.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/safe_output.hpp"
#include "drill/process/scratch.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace muster::cli {
namespace {

constexpr Millis kDevLook = 50;          // between two checks of the daemons
constexpr Millis kDevGrace = 40'000;     // --node-grace, its default
constexpr Millis kDevDrainMax = 60'000;  // twice the usual grace period of pods

class Dev {
 public:
  explicit Dev(const DevOptions& options) : o_(options) {}

  int run() {
    outlive_reader();  // the cluster runs until it is stopped
    if (Status s = make_directory(); !s) return fail(s.error(), "dev");
    signals_.emplace();
    auto made = drill::Scratch::start({.dir = folder_,
                                       .executable = own_executable(),
                                       .nodes = o_.nodes,
                                       .slots = o_.slots,
                                       .grace_ms = kDevGrace,
                                       .witnesses = false,
                                       .prefix = "dev-",
                                       .api = o_.api,
                                       .api_socket = api_socket(),
                                       .listen = "unix:" + folder_ + "/agents"},
                                      [this] {
                                        if (signals_->next(0) != 0) interrupted_ = true;
                                        return interrupted_;
                                      });
    if (!made)
      return interrupted_ ? fail(kInterrupted, "dev: interrupted") : fail(made.error(), "dev");
    scratch_ = std::move(*made);
    tell();
    int code = kDone;
    if (!o_.command.empty()) {
      code = run_command();
    } else {
      while (signals_->next(kDevLook) == 0) supervise();
    }
    leave();
    return code;
  }

 private:
  Status make_directory() {
    if (o_.data_dir.empty()) {
      auto made = Ephemeral::make("muster-dev-");
      if (!made) return made.error();
      temporary_.emplace(std::move(*made));
      folder_ = temporary_->path();
      return Nothing{};
    }
    folder_ = o_.data_dir;
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return invalid("--data-dir: cannot make " + folder_ + ": " + error.message());
    // At the end, the keepers in this directory are killed, so they must be ours.
    const std::string name = folder_ + "/dev.lock";
    if (!std::filesystem::exists(name, error) && !std::filesystem::is_empty(folder_, error))
      return invalid("--data-dir: " + folder_ +
                     " is neither empty nor from an earlier muster dev; choose another directory");
    lock_ = Fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock_.get() < 0)
      return invalid("--data-dir: cannot open " + name + ": " + std::strerror(errno));
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
      return invalid("--data-dir: " + folder_ + " is in use by another muster dev");
    return Nothing{};
  }

  // Where nobody else can take the coordinator's place while it restarts, as on a port. Empty: the
  // path is longer than the address of a socket can be.
  std::string api_socket() const {
    std::string path = folder_ + "/api.sock";
    return path.size() < sizeof sockaddr_un{}.sun_path ? path : "";
  }

  // To stderr if a command's output goes to stdout.
  void tell() const {
    std::ostream& out = o_.command.empty() ? std::cout : std::cerr;
    out << "muster dev: " << o_.nodes << (o_.nodes == 1 ? " node" : " nodes") << " of " << o_.slots
        << (o_.slots == 1 ? " slot" : " slots") << ", state and logs in " << folder_
        << (temporary_ ? " (removed at the end)" : "") << std::endl;
    if (o_.command.empty())
      out << "  export MUSTER_API=" << scratch_->client_address() << "\n  web page: http://"
          << scratch_->api() << "/ (Ctrl-C stops the cluster)" << std::endl;
  }

  void supervise() {
    for (const std::string& ended : scratch_->supervise())
      std::cerr << "muster: dev: " << ended << std::endl;
  }

  int run_command() {
    const std::string api = scratch_->client_address();
    std::vector<char*> words;
    for (const std::string& word : o_.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    setenv("MUSTER_API", api.c_str(), 1);
    const pid_t pid = fork();
    if (pid < 0) return fail(kUsage, std::string("dev: cannot fork: ") + std::strerror(errno));
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      execvp(words.front(), words.data());
      const int error = errno;
      const std::string said =
          "muster: dev: cannot run " + o_.command.front() + ": " + std::strerror(error) + "\n";
      (void)!write(STDERR_FILENO, said.data(), said.size());
      _exit(exit_of_exec(error));
    }
    for (;;) {
      int status = 0;
      if (waitpid(pid, &status, WNOHANG) == pid)
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      // A Ctrl-C at the terminal has already reached the command.
      const int signal = signals_->next(kDevLook);
      if (signal != 0 && (signal != SIGINT || isatty(STDIN_FILENO) == 0)) kill(pid, signal);
      supervise();
    }
  }

  // Lets the agents terminate their pods and report how they ended. After a signal, or if the pods
  // take too long, kills whatever still runs.
  void leave() {
    for (uint32_t node = 0; node < o_.nodes; ++node)
      if (auto& agent = scratch_->agent(node).process) (void)agent->send(SIGTERM);
    const Millis until = boot_now() + kDevDrainMax;
    for (uint32_t node = 0; node < o_.nodes; ++node) {
      auto& agent = scratch_->agent(node).process;
      while (agent && !agent->gone() && boot_now() < until)
        if (signals_->next(kDevLook) != 0) return end();
    }
    end();
  }

  void end() {
    for (uint32_t node = 0; node < o_.nodes; ++node)
      (void)scratch_->end(scratch_->agent(node), SIGKILL);
    (void)scratch_->end(scratch_->coordinator(), SIGTERM);
    scratch_.reset();
    if (temporary_) temporary_->remove();
  }

  const DevOptions& o_;
  std::string folder_;
  std::optional<Ephemeral> temporary_;
  Fd lock_;  // of a directory that is kept
  bool interrupted_ = false;
  std::optional<Signals> signals_;
  std::unique_ptr<drill::Scratch> scratch_;
};

constexpr int64_t kDevNodesMax = 100, kDevSlotsMax = 10'000;

}  // namespace

int execute(const DevOptions& options) {
  return Dev(options).run();
}

Verb dev_verb() {
  auto o = std::make_shared<DevOptions>();
  return {.title = {"Daemons", "dev", "Run a local cluster for experiments and tests"},
          .rows = {{"--nodes", "N", "Number of nodes, an agent each (default)", &o->nodes,
                    whole(1, kDevNodesMax)},
                   {"--slots", "N", "Maximum pods running at once on each node (default)",
                    &o->slots, whole(1, kDevSlotsMax)},
                   {"--data-dir", "D",
                    "Directory for state and logs, kept (default: a temporary one, removed)",
                    &o->data_dir},
                   {"--api", "ADDR:PORT", "Address to serve the HTTP API on (default: a free port)",
                    &o->api}},
          .footer =
              "Examples:\n  muster dev --nodes 5\n  muster dev -- ./test.sh\n"
              "Prints MUSTER_API=unix:PATH to paste into another shell, and the address of the "
              "web page. Daemons that end are restarted. Ctrl-C terminates the pods and stops the "
              "cluster; press it again to stop without waiting for them. With CMD after --, the "
              "cluster runs until CMD exits; MUSTER_API is set for CMD.\n"
              "Exit codes: that of CMD (128+S if signal S ended it); without CMD 0.",
          .takes_command = true,
          .configured = false,
          .finish = [o](const Given& given) -> Judged {
            auto api = normal_address(
                o->api.ends_with(":0") ? o->api.substr(0, o->api.size() - 1) + "1" : o->api);
            if (!api || api->starts_with("unix:") || api->starts_with("https:"))
              return Usage{"--api: `" + o->api + "` is not an address: write HOST:PORT, such as " +
                           kDefaultApi};
            if (!o->api.ends_with(":0")) o->api = *api;
            if (!o->data_dir.empty()) o->data_dir = absolute_dir(o->data_dir);
            o->command = given.tail;
            return *o;
          }};
}

}  // namespace muster::cli
