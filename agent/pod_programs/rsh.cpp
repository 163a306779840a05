#include "agent/pod_programs/rsh.hpp"

#include "agent/pod_programs/local_client.hpp"
#include "base/clock.hpp"
#include "base/exec_exit.hpp"
#include "base/files/whole_write.hpp"
#include "base/secret.hpp"
#include "core/node/mpi.hpp"

#include <kj/async-io.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace muster::agent {
namespace {

constexpr int kOurs = 255;  // like ssh
constexpr Millis kTimeoutMs = 300'000;
constexpr Millis kConnectAgainMs = 100;
constexpr Millis kGiveUpWaitMs = 2'000;
constexpr uint32_t kChunkMax = 256u << 10;
constexpr size_t kSessionBytes = 16;
constexpr size_t kInputMax = 64u << 10;  // bytes of a write
constexpr std::string_view kFlags = "46AaCfGgKkMNnqsTtVvXxYy";
constexpr std::string_view kWithValue = "BbcDEeFIiJLlmOopQRSWw";

// Of the shell and of launchers, for their own children only.
constexpr std::string_view kNotSent[] = {"PWD", "OLDPWD", "SHLVL", "_"};
constexpr std::string_view kNotSentPrefixes[] = {"PMI_", "PMIX_", "HYDRA_"};

// Runs before the command, on the remote side. Open MPI's daemons name their session directory
// after the machine and the job, and its ranks their shared memory after the machine and their
// number there, so two pods on a machine would use the same. This gives each session its own.
constexpr const char* kPrologue = R"(muster_shm=/dev/shm/muster-${MUSTER_RUN_DIR##*/}
if [ -n "$MUSTER_RUN_DIR" ] && (umask 077; mkdir -p "$muster_shm") 2>/dev/null &&
  [ -O "$muster_shm" ] && [ ! -L "$muster_shm" ] && chmod 700 "$muster_shm" &&
  mkdir -p "$muster_shm/$$"; then
  trap 'rm -rf "$muster_shm/$$"; rmdir "$muster_shm" 2>/dev/null' EXIT
  : ${OMPI_MCA_btl_vader_backing_directory:=$muster_shm/$$}
  : ${OMPI_MCA_orte_tmpdir_base:=$muster_shm/$$}
  : ${PRTE_MCA_prte_tmpdir_base:=$muster_shm/$$}
  export OMPI_MCA_btl_vader_backing_directory
  export OMPI_MCA_orte_tmpdir_base PRTE_MCA_prte_tmpdir_base
fi
)";

// Then the script on stdin, of a launcher's environment.
constexpr const char* kTakeEnvironment = "eval \"$(cat)\"\nexec </dev/null\n";

int fail(const std::string& message) {
  std::fprintf(stderr, "muster-rsh: %s\n", message.c_str());
  return kOurs;
}

// MUSTER_RSH_TIMEOUT.
std::optional<Millis> timeout_ms() {
  const char* const text = std::getenv("MUSTER_RSH_TIMEOUT");
  if (text == nullptr || *text == '\0') return kTimeoutMs;
  uint32_t seconds = 0;
  const char* const last = text + std::strlen(text);
  const auto [end, error] = std::from_chars(text, last, seconds);
  if (error != std::errc{} || end != last || seconds == 0) return std::nullopt;
  return Millis{seconds} * 1000;
}

std::string_view to_view(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

// Retries over new connections to the agent.
class Rsh {
 public:
  // `input`: what the command reads first. `stdin_fd`: what it then reads; -1: nothing.
  Rsh(RshLine line, LocalClient local, Millis timeout, std::string input, int stdin_fd)
      : line_(std::move(line)),
        local_(std::move(local)),
        timeout_ms_(timeout),
        input_(std::move(input)),
        reads_(stdin_fd >= 0 || !input_.empty()),
        input_ends_(stdin_fd < 0),
        stdin_fd_(stdin_fd) {}

  int run() {
    auto io = kj::setupAsyncIo();
    KJ_DEFER(stdin_ = nullptr);  // before io
    if (stdin_fd_ >= 0)
      stdin_ =
          io.lowLevelProvider->wrapInputFd(stdin_fd_, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
    Millis deadline = boot_now() + timeout_ms_;
    std::string why = "its agent does not respond";
    while (boot_now() < deadline) {
      std::optional<int> exit_code;
      auto failed = kj::runCatchingExceptions([&] { exit_code = talk(io, deadline, why); });
      if (exit_code) return *exit_code;
      if (failed != nullptr) {
        KJ_IF_MAYBE (e, failed) {
          if (e->getType() != kj::Exception::Type::DISCONNECTED)
            why = std::string(e->getDescription().cStr());
        }
      }
      if (std::exchange(answered_, false)) deadline = boot_now() + timeout_ms_;
      io.provider->getTimer().afterDelay(kConnectAgainMs * kj::MILLISECONDS).wait(io.waitScope);
    }
    return lost(io, line_.host + " could not be reached within " +
                        std::to_string(timeout_ms_ / 1000) + " s: " + why);
  }

 private:
  using Connection = LocalClient::Connection;

  // The exit code, once it is known. nullopt, or an exception: try again.
  std::optional<int> talk(kj::AsyncIoContext& io, Millis deadline, std::string& why) {
    auto connection = local_.connect(io);
    auto request = connection->local().execRequest();
    request.setToken(local_.token());
    request.setHost(line_.host);
    request.setSession(session_);
    request.setAttempt(attempt_);
    request.setInput(reads_);
    // Without words, a session is only joined, and not started a second time if it is over.
    if (attempt_ < 0) {
      auto words = request.initCommand(3);
      words.set(0, "/bin/sh");
      words.set(1, "-c");
      words.set(2, kPrologue + line_.command);
    }
    auto& timer = io.provider->getTimer();
    const Millis left = std::max<Millis>(1, deadline - boot_now());
    auto answer =
        request.send()
            .dropPipeline()
            .then([](auto&& got) {
              return kj::Maybe<capnp::Response<wire::Local::ExecResults>>(kj::mv(got));
            })
            .exclusiveJoin(timer.afterDelay(left * kj::MILLISECONDS)
                               .then([]() -> kj::Maybe<capnp::Response<wire::Local::ExecResults>> {
                                 return nullptr;
                               }))
            .wait(io.waitScope);
    KJ_IF_MAYBE (got, answer) {
      const auto result = got->getResult();
      if (result.isRefused()) {
        const auto refused = result.getRefused();
        return give_up(io, *connection, {refused.getMessage().begin(), refused.getMessage().size()},
                       refused.getLost());
      }
      const auto ran = result.getRan();
      attempt_ = static_cast<int32_t>(ran.getAttempt());
      auto process = ran.getProcess();
      // A lost connection is noticed by follow().
      auto feeding = (reads_ ? feed(process) : kj::Promise<void>(kj::READY_NOW))
                         .eagerlyEvaluate([](kj::Exception&&) {});
      return follow(io, *connection, process);
    }
    why = "its pod does not run";
    return std::nullopt;
  }

  // Writes input to the command until it ends or the command takes no more.
  kj::Promise<void> feed(wire::Process::Client process) {
    if (input_.empty() && !input_ends_)
      return stdin_->tryRead(chunk_, 1, sizeof chunk_).then([this, process](size_t size) mutable {
        input_.append(chunk_, size);
        input_ends_ = size == 0;
        return feed(process);
      });
    auto request = process.writeRequest();
    const std::string_view now = std::string_view(input_).substr(0, kInputMax);
    request.setOffset(taken_);
    request.setData({reinterpret_cast<const kj::byte*>(now.data()), now.size()});
    request.setEof(input_ends_ && now.size() == input_.size());
    return request.send().then([this, process](auto&& answer) mutable -> kj::Promise<void> {
      const uint64_t taken = std::min<uint64_t>(answer.getTaken() - taken_, input_.size());
      input_.erase(0, taken);
      taken_ += taken;
      if (answer.getClosed()) return kj::READY_NOW;
      return feed(process);
    });
  }

  std::optional<int> follow(kj::AsyncIoContext& io, Connection& connection,
                            wire::Process::Client process) {
    while (true) {
      answered_ = true;
      auto request = process.readRequest();
      request.setStdout(out_);
      request.setStderr(err_);
      request.setLimit(kChunkMax);
      auto got = request.send().wait(io.waitScope);
      const bool written = write_whole(STDOUT_FILENO, to_view(got.getStdout())) &&
                           write_whole(STDERR_FILENO, to_view(got.getStderr()));
      out_ += got.getStdout().size();
      err_ += got.getStderr().size();
      if (!got.getEnded() && written) continue;
      const std::string message(got.getMessage().begin(), got.getMessage().size());
      const int exit_code = got.getEnded() ? got.getExitCode() : kOurs;
      // The agent ends and forgets the session when we are gone.
      if (!got.getEnded()) return fail("cannot write the output of " + line_.host);
      if (message.empty()) return exit_code;
      if (exit_code != kOurs) return fail(line_.host + ": " + message), exit_code;
      return give_up(io, connection, line_.host + ": " + message, true);
    }
  }

  // Some launchers do not notice that we have failed.
  int give_up(kj::AsyncIoContext& io, Connection& connection, const std::string& message,
              bool is_lost) {
    auto request = connection.local().giveUpRequest();
    request.setToken(local_.token());
    request.setMessage(message);
    request.setLost(is_lost);
    kj::runCatchingExceptions([&] {
      request.send()
          .ignoreResult()
          .exclusiveJoin(io.provider->getTimer().afterDelay(kGiveUpWaitMs * kj::MILLISECONDS))
          .wait(io.waitScope);
    });
    return fail(message);
  }

  int lost(kj::AsyncIoContext& io, const std::string& message) {
    kj::runCatchingExceptions([&] { give_up(io, *local_.connect(io), message, true); });
    return kOurs;
  }

  const RshLine line_;
  const LocalClient local_;
  const Millis timeout_ms_;
  const std::string session_ = random_hex(kSessionBytes);
  int32_t attempt_ = -1;  // of the pod that the command runs in
  uint64_t out_ = 0, err_ = 0;
  std::string input_;  // that the command has not taken yet
  uint64_t taken_ = 0;
  const bool reads_;
  bool input_ends_;
  const int stdin_fd_;
  kj::Own<kj::AsyncInputStream> stdin_;
  char chunk_[1 << 16];
  bool answered_ = false;
};

}  // namespace

namespace {

// Reads ssh's options from `at` on. False: one is unknown.
bool read_options(const std::vector<std::string>& arguments, size_t& at, RshLine& line) {
  for (; at < arguments.size() && arguments[at].size() > 1 && arguments[at][0] == '-'; ++at) {
    const std::string& option = arguments[at];
    if (option == "--") {
      ++at;
      return true;
    }
    // Like getopt: flags, of which the last may take a value, here or in the next word.
    for (size_t i = 1; i < option.size(); ++i) {
      if (kWithValue.find(option[i]) != std::string_view::npos) {
        if (i + 1 == option.size()) ++at;
        break;
      }
      if (kFlags.find(option[i]) == std::string_view::npos) return false;
      line.no_input = line.no_input || option[i] == 'n';
    }
  }
  return true;
}

// Whether there is something to read on stdin: it is open, and is not /dev/null.
bool has_stdin() {
  struct stat in {
  }, null{};
  if (fstat(STDIN_FILENO, &in) != 0) return false;
  const bool devices = S_ISCHR(in.st_mode) && stat("/dev/null", &null) == 0;
  return !devices || in.st_rdev != null.st_rdev;
}

// A pipe with what is on stdin, which may be a file and so cannot be waited for.
int piped_stdin() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  std::thread([out = ends[1]] {
    std::array<char, 1 << 16> bytes{};
    for (;;) {
      const ssize_t size = read(STDIN_FILENO, bytes.data(), bytes.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0 || !write_whole(out, {bytes.data(), static_cast<size_t>(size)})) break;
    }
    close(out);
  }).detach();
  return ends[0];
}

// Whether a shell can export a variable of this name.
bool is_shell_name(std::string_view name) {
  const auto letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, [&letter](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

bool is_hydra(const std::string& command) {
  return command.find("hydra_pmi_proxy") != std::string::npos;
}

}  // namespace

std::optional<RshLine> parse_rsh(const std::vector<std::string>& arguments) {
  RshLine line;
  size_t at = 0;
  if (!read_options(arguments, at, line) || at >= arguments.size()) return std::nullopt;
  line.host = arguments[at++];
  if (const size_t user = line.host.rfind('@'); user != std::string::npos)
    line.host.erase(0, user + 1);
  if (!read_options(arguments, at, line) || line.host.empty()) return std::nullopt;
  for (; at < arguments.size(); ++at) {
    if (!line.command.empty()) line.command += ' ';
    line.command += arguments[at];
  }
  return line;
}

std::string environment_script(const char* const* environ, std::string_view own,
                               const std::string& run_dir) {
  const std::string list = " " + std::string(own) + " ", bin = run_dir + "/bin:";
  std::string script;
  for (; environ != nullptr && *environ != nullptr; ++environ) {
    const std::string_view variable(*environ);
    const size_t equals = variable.find('=');
    const std::string_view name = variable.substr(0, equals);
    std::string_view value = variable.substr(std::min(equals, variable.size() - 1) + 1);
    const auto begins = [name](std::string_view prefix) { return name.starts_with(prefix); };
    if (equals == std::string_view::npos || !is_shell_name(name) ||
        list.find(" " + std::string(name) + " ") != std::string::npos ||
        std::ranges::find(kNotSent, name) != std::end(kNotSent) ||
        std::ranges::any_of(kNotSentPrefixes, begins))
      continue;
    script.append("export ").append(name).append("=");
    if (name == "PATH" && value.starts_with(bin)) {
      value.remove_prefix(bin.size());
      script += "\"$MUSTER_RUN_DIR/bin\":";
    }
    script += "'";
    for (const char c : value) script += c == '\'' ? std::string("'\\''") : std::string(1, c);
    script += "'\n";
  }
  return script;
}

int run_rsh(const std::vector<std::string>& arguments) {
  auto line = parse_rsh(arguments);
  if (!line)
    return fail(
        "usage: muster-rsh [ssh options] HOST [COMMAND...]\n"
        "Runs the command with `sh -c` in the pod of the same MPI job that HOST names.");
  if (line->command.empty() && (line->no_input || isatty(STDIN_FILENO) == 1))
    return fail("there is no command, and muster-rsh opens no terminal; use muster exec -it");
  auto local = LocalClient::of_environment();
  if (!local) return fail(local.error().message);
  const auto timeout = timeout_ms();
  if (!timeout) return fail("MUSTER_RSH_TIMEOUT must be a number of seconds above 0");
  std::signal(SIGPIPE, SIG_IGN);
  if (line->command.empty()) line->command = "exec sh";
  std::string input;
  bool carries = !line->no_input && has_stdin();
  const char* const own = std::getenv(core::node::kOwnVariables);
  const char* const hydra_env = std::getenv("HYDRA_ENV");
  const char* const run_dir = std::getenv("MUSTER_RUN_DIR");
  if (is_hydra(line->command)) {
    carries = false;
    if (own != nullptr && run_dir != nullptr && hydra_env != nullptr &&
        std::string_view(hydra_env) == "none") {
      input = environment_script(environ, own, run_dir);
      line->command.insert(0, kTakeEnvironment);
    }
  }
  const int in = carries ? piped_stdin() : -1;
  return Rsh(std::move(*line), std::move(*local), *timeout, std::move(input), in).run();
}

int refuse_scp() {
  return fail(
      "scp is not available; to copy a file, use ssh HOST 'cat >FILE' <FILE, or for directories "
      "tar "
      "or rsync over ssh");
}

int run_mpi_entry(const std::vector<std::string>& arguments) {
  size_t at = 0;
  if (at < arguments.size() && arguments[at] == "--") ++at;
  if (at == arguments.size()) {
    std::fputs(
        "muster-mpi-entry: usage: muster-mpi-entry [--] COMMAND...\n"
        "Runs the command in index 0 of an MPI job; the other indexes wait to be ended.\n",
        stderr);
    return 2;
  }
  const char* const index = std::getenv("JOB_COMPLETION_INDEX");
  if (index == nullptr) {
    std::fputs("muster-mpi-entry: JOB_COMPLETION_INDEX is not set: the job must be Indexed\n",
               stderr);
    return 2;
  }
  if (std::strcmp(index, "0") != 0) {
    sigset_t all, signals;
    sigfillset(&all);  // also the one that announces a time limit; the launcher passes that on
    sigprocmask(SIG_BLOCK, &all, nullptr);
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
    int got = 0;
    while (sigwait(&signals, &got) != 0) {
    }
    return 0;
  }
  std::vector<char*> words;
  for (; at < arguments.size(); ++at) words.push_back(const_cast<char*>(arguments[at].c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int error = errno;
  std::fprintf(stderr, "muster-mpi-entry: %s: %s\n", words[0], std::strerror(error));
  return exit_of_exec(error);
}

}  // namespace muster::agent
