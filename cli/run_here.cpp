#include "cli/run_here.hpp"

#include "agent/agent.hpp"
#include "base/log.hpp"
#include "base/private_files.hpp"
#include "cli/ephemeral.hpp"
#include "cli/exit_codes.hpp"
#include "cli/files.hpp"
#include "cli/follow.hpp"
#include "cli/text.hpp"
#include "coordinator/coordinator.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <sched.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr Millis kReadyMax = 120'000;  // a data-dir of 10^6 pods folds in seconds
constexpr Millis kLook = 50;           // between two looks at an agent that is leaving

// The agent's thread, and one that waits for it, so that this one need not.
class LocalAgent {
 public:
  explicit LocalAgent(agent::AgentOptions options) : agent_(std::move(options)) {
    joiner_ = std::thread([this] {
      result_ = agent_.join();
      left_ = true;
    });
  }
  ~LocalAgent() {
    if (!left_) agent_.stop_now();
    if (joiner_.joinable()) joiner_.join();
  }
  bool left() const { return left_; }
  void drain() { agent_.drain(); }
  void kill() { agent_.stop_now(); }
  // Why it left by itself; valid once left().
  const Result<int>& result() const { return result_; }

 private:
  agent::AgentThread agent_;
  Result<int> result_ = 0;
  std::atomic<bool> left_ = false;
  std::thread joiner_;
};

std::string logs_of(const std::string& dir, const Json& job) {
  return dir + "/agent/logs/" + text_at(job, {"metadata", "uid"});
}

class Run {
 public:
  Run(const RunOptions& options, std::string ns, RunIdentity job, std::string text)
      : options_(options), ns_(std::move(ns)), job_(std::move(job)), text_(std::move(text)) {}

  int run() {
    std::string dir = options_.data_dir;
    if (dir.empty()) {
      auto made = Ephemeral::make();
      if (!made) return fail(made.error());
      temporary_.emplace(std::move(*made));
      dir = temporary_->path();
    } else {
      std::error_code ignored;
      dir = std::filesystem::absolute(dir, ignored).lexically_normal().string();
    }
    const int code = run_in(dir);
    if (temporary_ && keep_) {
      temporary_->keep();
      std::cout << "state and logs are kept in " << dir << std::endl;
    }
    return code;
  }

 private:
  int run_in(const std::string& dir) {
    Signals signals;  // before the first thread
    close_umask();
    log::setup("run", options_.log_level);
    auto coordinator = coordinator::Coordinator::start(
        {.data_dir = dir,
         .api = "127.0.0.1:0",
         .listen = "127.0.0.1:0",
         .wait_for_nodes = false});  // its one agent starts after it
    if (!coordinator) return fail(coordinator.error());
    ApiClient client((*coordinator)->api_address());
    if (const int code = wait_ready(client, signals); code != kDone) return code;
    auto name = begin(client, dir);
    if (!name)
      return fail(name.error(),
                  name.error().code == Errc::unavailable ? "" : shown_path(options_.file));

    agent::AgentOptions agent_options;
    agent_options.coordinator = (*coordinator)->listen_address();
    agent_options.slots = static_cast<uint32_t>(options_.slots > 0 ? options_.slots : cpu_count());
    agent_options.work_dir = dir + "/agent";
    LocalAgent agent(agent_options);

    Follow end = follow(client, signals, ns_, *name, options_.timeout_ms, options_.target.color,
                        [&agent] { return agent.left(); });
    const int code = finish(client, signals, agent, dir, *name, end);
    // Nothing is left to run: the keeper goes as well.
    if (!agent.left()) agent.kill();
    while (!agent.left()) signals.next(kLook);
    (*coordinator)->stop();
    return code;
  }

  int wait_ready(ApiClient& client, Signals& signals) {
    const Millis begin = boot_now();
    for (;;) {
      auto answer = client.get("/readyz");
      if (answer && answer->ok()) return kDone;
      if (boot_now() - begin > kReadyMax) return fail(answer ? refusal(*answer) : answer.error());
      if (signals.next(kLook) != 0) return fail(kInterrupted, "interrupted");
    }
  }

  // Creates the job, or finds it: its name.
  Result<std::string> begin(ApiClient& client, const std::string& dir) {
    auto jobs = object(client, object_path(Kind::job, ""));
    if (!jobs) return jobs.error();
    const Json& items = at(*jobs, {"items"});
    const bool there = items.is_array() && !items.empty();
    if (there && !std::filesystem::exists(dir + "/run.json")) {
      return Error{
          Errc::conflict,
          dir + " is the data-dir of a coordinator with jobs of its own: use another --data-dir",
          {}};
    }
    auto claimed = claim(dir, job_);
    if (!claimed) return claimed.error();
    if (there) {
      const std::string name = text_at(items.front(), {"metadata", "name"});
      if (auto resumed = resume(client, dir, name); !resumed) return resumed.error();
      std::cerr << "job/" << name << " goes on" << std::endl;
      return name;
    }
    auto job = create_job(client, ns_, text_.empty() ? dumped(claimed->manifest) : text_, false);
    if (!job) {
      // What was refused was not begun: the directory is free for a better manifest.
      if (job.error().code != Errc::unavailable) unlink((dir + "/run.json").c_str());
      return job.error();
    }
    return text_at(*job, {"metadata", "name"});
  }

  static std::string stopped_mark(const std::string& dir) { return dir + "/stopped"; }

  // Ends the pods as a suspend does, counted nowhere, and waits for their ends. A mark says that it
  // was us, so that the next run resumes and does not touch what the owner has suspended.
  void suspend(ApiClient& client, Signals& signals, LocalAgent& agent, const std::string& dir,
               const Json& job, const std::string& name) {
    const std::string path = object_path(Kind::job, ns_, name);
    if (at(job, {"spec", "suspend"}) != Json(true)) {
      if (!write_file(stopped_mark(dir), "\n")) return;
      if (!change_object(client, path, {{"spec", {{"suspend", true}}}})) return;
    }
    while (!agent.left()) {
      auto now = object(client, path);
      if (!now || end_of(*now) != JobEnd::none) return;
      const Json& status = at(*now, {"status"});
      if (number_at(status, {"active"}) == 0 && number_at(status, {"terminating"}) == 0) return;
      if (signals.next(kLook) != 0) return agent.kill();
    }
  }

  Status resume(ApiClient& client, const std::string& dir, const std::string& name) {
    if (!std::filesystem::exists(stopped_mark(dir))) return Nothing{};
    auto resumed =
        change_object(client, object_path(Kind::job, ns_, name), {{"spec", {{"suspend", false}}}});
    if (!resumed) return resumed.error();
    unlink(stopped_mark(dir).c_str());
    return Nothing{};
  }

  int finish(ApiClient& client, Signals& signals, LocalAgent& agent, const std::string& dir,
             const std::string& name, const Follow& end) {
    switch (end.how) {
      case Followed::complete:
      case Followed::failed:
        keep_ = options_.keep || end.how == Followed::failed;
        std::cout << summary_text(client, ns_, end.job, Paint(options_.target.color, STDOUT_FILENO),
                                  [&](const Failures&) {
                                    return "all of their output: " + logs_of(dir, end.job);
                                  })
                  << std::flush;
        return end.how == Followed::complete ? kDone : kFailed;
      case Followed::interrupted:
      case Followed::timeout: {
        keep_ = true;
        const bool by_signal = end.how == Followed::interrupted;
        std::cerr << (by_signal ? "interrupted" : "--timeout passed") << ": job/" << name
                  << " is stopped, its pods get SIGTERM and their grace; Ctrl-C kills them"
                  << std::endl;
        suspend(client, signals, agent, dir, end.job, name);
        agent.drain();
        while (!agent.left()) {
          if (signals.next(kLook) != 0) agent.kill();
        }
        std::cerr << "run it again with --data-dir " << shell_quoted(dir) << " and it goes on"
                  << std::endl;
        return by_signal ? kInterrupted : kTimeout;
      }
      case Followed::gone:
        return fail(end.error);
      case Followed::unreachable:
        keep_ = true;
        if (agent.left() && !agent.result()) return fail(agent.result().error(), "agent");
        return fail(end.error);
    }
    return kFailed;
  }

  const RunOptions& options_;
  const std::string ns_;
  const RunIdentity job_;
  const std::string text_;
  std::optional<Ephemeral> temporary_;
  bool keep_ = false;  // of a temporary directory
};

}  // namespace

int run_here(const RunOptions& options, const std::string& ns, RunIdentity job,
             const std::string& text) {
  return Run(options, ns, std::move(job), text).run();
}

int cpu_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace muster::cli
