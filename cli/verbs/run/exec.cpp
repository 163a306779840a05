// muster exec: runs a command in a running pod and shows what it prints.
//
// One thread reads and shows the output, another passes our input on, so that neither waits for the
// other. The main thread waits for signals, and keeps the command alive while the reader of our
// output is slow.
#include "cli/verbs/run/exec.hpp"

#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/signals.hpp"
#include "client/inputs/command_input.hpp"
#include "client/inputs/pod_command.hpp"
#include "client/inputs/tasks.hpp"
#include "client/inputs/user_terminal.hpp"
#include "client/terminal/exit_codes.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr Millis kLongRead = 30'000;        // time limit of a request that waits for output
constexpr Millis kTryAgain = 200;           // while the coordinator or agent restarts
constexpr Millis kEndMax = 10'000;          // to notify the coordinator of an interrupt
constexpr Millis kKeepAliveEvery = 10'000;  // a command not read for a minute is ended
constexpr int kNotStarted = 255;

bool write_out(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t size = write(fd, data.data(), data.size());
    if (size < 0 && errno != EINTR) return false;
    if (size > 0) data.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

bool container_runs(const Json& pod, const std::string& name) {
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    for (const Json& one : at(pod, {"status", list}))
      if (text_at(one, {"name"}) == name) return at(one, {"state", "running"}).is_object();
  return false;
}

// Whether the command can join the pod. While its init containers run, it is Pending.
bool may_join(const Json& pod, const ExecOptions& o) {
  if (!text_at(pod, {"metadata", "deletionTimestamp"}).empty()) return false;
  return o.container.empty() ? text_at(pod, {"status", "phase"}) == "Running"
                             : container_runs(pod, o.container);
}

// The pod of a job in which the command is to run.
Result<std::string> running_pod(ApiClient& client, const ExecOptions& o) {
  auto job = object(client, object_path(Kind::job, o.target.ns, o.job));
  if (!job) return with_near_miss(client, o.target.ns, Kind::job, o.job, job.error());
  std::string index = o.index ? std::to_string(*o.index) : "";
  if (o.task) {
    auto found = indexes_of_tasks(*job, std::to_string(*o.task));
    if (!found) return found.error();
    index = std::move(*found);
  }
  const std::string label =
      index.empty() ? "" : "batch.kubernetes.io/job-completion-index=" + index;
  auto pods = pods_of(client, o.target.ns, o.job, label, "");
  if (!pods) return pods.error();
  const std::string which = o.task          ? " task " + std::to_string(*o.task)
                            : index.empty() ? ""
                                            : " index " + index;
  const std::string shown = "job/" + o.job + which;
  if (pods->empty()) return Error{Errc::not_found, shown + " has no pod", {}};
  std::erase_if(*pods, [&o](const Json& pod) { return !may_join(pod, o); });
  if (pods->empty())
    return Error{Errc::conflict,
                 shown + (o.container.empty()
                              ? " has no running pod"
                              : " has no pod in which container " + o.container + " is running"),
                 {}};
  if (pods->size() > 1 && index.empty())
    return Error{Errc::invalid,
                 shown + " has " + std::to_string(pods->size()) +
                     " running pods: choose one with " +
                     (tasks_of(*job) ? "--task T" : "--index I") + ", or by its name",
                 {}};
  return text_at(pods->back(), {"metadata", "name"});
}

class Exec {
 public:
  explicit Exec(const ExecOptions& options) : o_(options) {}

  int run() {
    if (o_.terminal && !UserTerminal::is_there())
      return fail(kUsage, "-t: standard input is not a terminal; use -i without -t to pass it on");
    std::signal(SIGPIPE, SIG_IGN);
    Signals signals({SIGWINCH});  // before the first thread
    std::thread reader([this, &signals] {
      code_ = follow();
      over_ = true;
      signals.wake();
    });
    while (!over_) {
      const int signal = signals.next(kKeepAliveEvery);
      if (signal == SIGWINCH) {
        if (started_ && input_) input_->window_changed();
      } else if (signal != 0) {
        terminal_.restore();
        if (!over_) stop(signals);
        leave(kInterrupted);  // the reader may be waiting for output
      }
      keep_alive();
    }
    reader.join();
    if (input_) leave(code_);
    return code_;
  }

 private:
  // Exits without joining the other threads, which may be waiting.
  [[noreturn]] void leave(int code) {
    terminal_.restore();
    std::cout.flush();
    _exit(code);
  }

  template <class... What>
  int failed(What&&... what) {
    terminal_.restore();
    return fail(std::forward<What>(what)...);
  }

  static bool interrupted(Signals& signals, Millis wait_ms) {
    const int signal = signals.next(wait_ms);
    return signal != 0 && signal != SIGWINCH;
  }

  std::unique_ptr<ApiClient> connected() const {
    auto client = connect(o_.target);
    client->set_timeout(std::max(o_.target.request_timeout_ms, kLongRead));
    return client;
  }

  // ---- the reader's thread

  int follow() {
    const auto client = connect(o_.target);
    std::string pod = o_.pod;
    if (pod.empty()) {
      auto found = running_pod(*client, o_);
      if (!found) return failed(found.error());
      pod = *found;
    }
    {
      const std::lock_guard lock(starting_);
      if (stopping_) return kInterrupted;
      command_.emplace(o_.target.ns, pod);
      auto started = command_->start(*client, o_.command, reads(), o_.container);
      if (!started)
        return failed(with_near_miss(*client, o_.target.ns, Kind::pod, pod, started.error()));
      for (const std::string& warning : started->warnings)
        std::cerr << "muster: " << warning << std::endl;
      read_at_ = boot_now();
      if (o_.input) pass_input_on();
      started_ = true;
    }
    client->set_timeout(std::max(o_.target.request_timeout_ms, kLongRead));
    return show(*client, pod);
  }

  PodCommand::Reads reads() const {
    return o_.terminal ? PodCommand::Reads::terminal
           : o_.input  ? PodCommand::Reads::input
                       : PodCommand::Reads::nothing;
  }

  // The thread may wait for input that never comes, so it is never joined.
  void pass_input_on() {
    if (o_.terminal && !stopping_) terminal_.make_raw();
    input_.emplace(*command_, o_.terminal);
    std::thread([this] {
      const auto client = connected();
      if (const auto refused = input_->run(*client)) {
        const int code = failed(*refused, "standard input");
        (void)command_->end(*client);
        leave(code);
      }
    }).detach();
  }

  int show(ApiClient& client, const std::string& pod) {
    std::optional<Millis> failing_since;  // unset: the last read was answered
    for (;;) {
      auto output = command_->read(client, out_, err_);
      if (stopping_) return kInterrupted;
      if (!output) {
        if (!failing_since) failing_since = boot_now();
        if (boot_now() - *failing_since > kAbsenceMax) return failed(output.error(), "pod " + pod);
        if (auto lost = find_again(client, output.error()))
          return failed(*lost, "pod " + pod + ": the exit code of the command is not known");
        continue;
      }
      failing_since.reset();
      read_at_ = boot_now();
      if (!write_out(STDOUT_FILENO, output->out) || !write_out(STDERR_FILENO, output->err))
        return unwritable(client, errno);
      out_ += output->out.size();
      err_ += output->err.size();
      if (!output->ended) continue;
      (void)command_->end(client);  // else it is forgotten a minute later
      if (output->message.empty()) return output->exit_code;
      return failed(
          output->exit_code == kNotStarted ? static_cast<int>(kRejected) : output->exit_code,
          "pod " + pod + ": " + output->message);
    }
  }

  // After a failed read: finds the command again, or returns why that is impossible.
  std::optional<Error> find_again(ApiClient& client, const Error& failure) {
    const auto may_come_back = [](Errc code) {
      return code == Errc::unavailable || code == Errc::overloaded;
    };
    if (failure.code != Errc::not_found && !may_come_back(failure.code)) return failure;
    Status found = command_->resume(client);
    if (found.ok()) return std::nullopt;
    if (!may_come_back(found.error().code)) return found.error();
    usleep(kTryAgain * 1000);
    return std::nullopt;
  }

  // The reader of our output is gone, or the disk is full.
  int unwritable(ApiClient& client, int error) {
    (void)command_->end(client);
    if (error == EPIPE) return 128 + SIGPIPE;
    return failed(kFailed, std::string("cannot write the output: ") + std::strerror(error));
  }

  // ---- the main thread

  void keep_alive() {
    if (!started_ || over_ || boot_now() - read_at_ < kKeepAliveEvery) return;
    if (main_ == nullptr) main_ = connected();
    (void)command_->read(*main_, out_, err_);
  }

  // Ends the command. Returns at the next signal, or once the coordinator has been unreachable for
  // kEndMax.
  void stop(Signals& signals) {
    stopping_ = true;
    std::unique_lock lock(starting_, std::defer_lock);
    const Millis give_up = boot_now() + kEndMax;
    while (!lock.try_lock()) {
      if (over_ || boot_now() > give_up || interrupted(signals, kTryAgain / 4)) return;
    }
    if (!started_) return;
    const auto client = connect(o_.target);
    client->set_patience(0);
    while (boot_now() < give_up) {
      Status ended = command_->end(*client);
      if (!ended.ok() && ended.error().code == Errc::not_found) {
        ended = command_->resume(*client);
        if (ended.ok()) continue;
        if (ended.error().code == Errc::conflict || ended.error().code == Errc::not_found) return;
      }
      if (ended.ok() || interrupted(signals, kTryAgain)) return;
    }
    std::cerr << "muster: cannot reach the coordinator to end the command; its node ends it a "
                 "minute after its output was last read"
              << std::endl;
  }

  const ExecOptions& o_;
  std::mutex starting_;  // held while the command is being started
  std::optional<PodCommand> command_;
  std::optional<CommandInput> input_;
  UserTerminal terminal_;
  std::atomic<bool> started_ = false, stopping_ = false, over_ = false;
  std::atomic<uint64_t> out_ = 0, err_ = 0;  // bytes read
  std::atomic<Millis> read_at_ = 0;
  std::atomic<int> code_ = 0;
  std::unique_ptr<ApiClient> main_;  // of the main thread
};

}  // namespace

int execute(const ExecOptions& options) {
  return Exec(options).run();
}

FlagRow index_row(std::optional<int64_t>& index) {
  return {"--index", "I", "Index of the job", &index, whole(0, kNumberMax)};
}

FlagRow task_row(std::optional<int64_t>& task) {
  return {"--task", "N",        "Task of a job submitted with --array", &task, whole(0, kNumberMax),
          0,        {"--index"}};
}

std::optional<Usage> check_chosen(const ExecOptions& options, const std::string& example) {
  if (options.job.empty() && (options.index || options.task))
    return Usage{"--index and --task apply to jobs only: " + example};
  return std::nullopt;
}

Verb exec_verb() {
  auto w = std::make_shared<Raw<ExecOptions, std::vector<std::string>>>();
  return {
      .title = {"Jobs", "exec", "Run a command in a running pod"},
      .rows = {{"what", "POD | job/J -- CMD ARG...",
                "Pod, or job with --index or --task, and the command after --", &w->what, kAnything,
                kRequired},
               index_row(w->o.index),
               task_row(w->o.task),
               {"-c,--container", "NAME",
                "Container or init container to join (default: the pod's first container)",
                &w->o.container},
               {"-i,--stdin", "", "Pass standard input to the command", &w->o.input},
               {"-t,--tty", "", "Give the command a terminal, with -i; standard input must be one",
                &w->o.terminal}},
      .asks = {&w->o.target},
      .footer =
          "Examples:\n  muster exec sweep-7-x2bqd -- nvidia-smi\n"
          "  muster exec job/sweep --index 7 -- sh -c 'df -h .; uptime'\n"
          "  muster exec -it sweep-7-x2bqd -- bash\n"
          "  muster exec sweep-7-x2bqd -c download -- du -sh data\n"
          "  muster exec -i sweep-7-x2bqd -- sh -c 'cat > input.csv' < input.csv\n"
          "CMD runs in a container of the pod, with its user, environment, directory and "
          "limits, until CMD or the container ends. Without -i its standard input is empty. Ctrl-C "
          "sends it SIGTERM, then SIGKILL after 5 s; with -t it is passed on like any other key.\n"
          "Exit codes: that of CMD (128+S if signal S ended it); 3 no such pod, 4 coordinator "
          "unreachable, 5 the pod or container is not running, 130 interrupted.",
      .takes_command = true,
      .finish = [w](const Given& given) -> Judged {
        ExecOptions& o = w->o;
        if (o.terminal && !o.input) return Usage{"-t needs -i: muster exec -it POD -- CMD"};
        if (w->what.size() > 1)
          return Usage{"`" + w->what[1] +
                       "`: the command comes after `--`: muster exec POD -- CMD"};
        const std::string& word = w->what.front();
        if (auto wrong = read_pod_or_job(word, o.pod, o.job)) return *wrong;
        if (auto wrong = check_chosen(o, "muster exec job/J --index 3 -- CMD")) return *wrong;
        if (given.tail.empty())
          return Usage{"needs a command: muster exec " + word + " -- CMD ARG..."};
        o.command = given.tail;
        return o;
      }};
}

}  // namespace muster::cli
