#include "cli/verbs/run/run_here.hpp"

#include "agent/agent.hpp"
#include "base/files/private_files.hpp"
#include "base/lines/stderr_lines.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/process/shell_words.hpp"
#include "base/process/usable_cpus.hpp"
#include "cli/verbs/run/wanted_job.hpp"
#include "client/documents/document_writes.hpp"
#include "client/documents/manifests.hpp"
#include "client/follow/ephemeral.hpp"
#include "client/follow/follow.hpp"
#include "client/follow/pod_files.hpp"
#include "client/news/attempts.hpp"
#include "client/news/rounds.hpp"
#include "client/settings/files.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/safe_output.hpp"
#include "client/terminal/starved.hpp"
#include "client/terminal/text.hpp"
#include "coordinator/coordinator.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

constexpr Millis kReadyMax = 120'000;  // recovering 10^6 pods takes seconds
constexpr Millis kLook = 50;           // between two polls of what cannot wake us

// The agent's thread, and a thread that joins it and wakes `signals`, so that the caller can wait
// for left() or a signal.
class LocalAgent {
 public:
  LocalAgent(agent::AgentOptions options, Signals& signals) : agent_(std::move(options)) {
    joiner_ = std::thread([this, &signals] {
      result_ = agent_.join();
      left_ = true;
      signals.wake();
    });
  }
  ~LocalAgent() {
    if (!left_) agent_.stop_now();
    if (joiner_.joinable()) joiner_.join();
  }
  bool left() const { return left_; }
  void drain() { agent_.drain(); }
  void kill() { agent_.stop_now(); }
  // Why it left; valid once left().
  const Result<int>& result() const { return result_; }

 private:
  agent::AgentThread agent_;
  Result<int> result_ = 0;
  std::atomic<bool> left_ = false;
  std::thread joiner_;
};

std::string command_text(const RunIdentity& job) {
  return dumped(with_surroundings(job.manifest, job.environment, job.dir, job.process));
}

std::string logs_of(const std::string& dir, const Json& job) {
  return dir + "/agent/logs/" + text_at(job, {"metadata", "uid"});
}

// The name of the agent's node; empty before its first start.
std::string node_in(const std::string& dir) {
  constexpr std::string_view kKey = "name ";
  std::ifstream identity(dir + "/agent/identity");
  for (std::string line; std::getline(identity, line);)
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  return "";
}

bool has_memory_limit(const Json& job) {
  const Json& pod = at(job, {"spec", "template", "spec"});
  for (const char* list : {"containers", "initContainers"})
    for (const Json& container : at(pod, {list}))
      if (!at(container, {"resources", "limits", "memory"}).is_null()) return true;
  return false;
}

// Says once, as soon as this machine's node has registered, that nothing enforces memory limits.
class LimitsNotice {
 public:
  LimitsNotice(ApiClient& client, bool wanted) : client_(client), due_(wanted) {}
  void look(const std::function<void()>& clear) {
    if (!due_) return;
    const auto nodes = object(client_, object_path(Kind::node, ""));
    if (!nodes) return;
    for (const Json& node : at(*nodes, {"items"}))
      for (const Json& condition : at(node, {"status", "conditions"}))
        if (text_at(condition, {"type"}) == "LimitsEnforced") judge(condition, clear);
  }

 private:
  void judge(const Json& condition, const std::function<void()>& clear) {
    const std::string status = text_at(condition, {"status"});
    if (status == "Unknown") return;
    due_ = false;
    const std::string said = text_at(condition, {"message"});
    constexpr std::string_view kWhy = "not enforced: ";
    const size_t why = said.find(kWhy);
    if (status == "True" || !said.starts_with("memory") || why == std::string::npos) return;
    clear();
    std::cerr << "muster: warning: the memory limit is not enforced on this machine: "
              << visible(said.substr(why + kWhy.size())) << std::endl;
  }

  ApiClient& client_;
  bool due_;
};

class Run {
 public:
  // Without `job`: runs whatever is in the data-dir.
  Run(const RunOptions& options, std::string ns, std::optional<WantedJob> job)
      : options_(options), ns_(std::move(ns)), files_(wanted_files(options)) {
    if (!job) return;
    job_ = std::move(job->job);
    document_ = std::move(job->document);
    configs_ = std::move(job->configs);
  }

  int run() {
    outlive_reader();  // a job that nobody reads is stopped as by Ctrl-C
    if (const Status enough = want_descriptors(kDescriptorsToServe); !enough)
      return fail(enough.error(), "run");
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
      temporary_->keep(options_.keep);
      std::cerr << "state and logs are kept in " << dir << (options_.keep ? "" : " for a day")
                << std::endl;
    }
    return code;
  }

 private:
  int run_in(const std::string& dir) {
    Signals signals;  // before the first thread
    close_umask();
    log::setup_queued("run", options_.log_level);
    auto coordinator =
        coordinator::Coordinator::start({.data_dir = dir,
                                         .api = "127.0.0.1:0",
                                         // Costs half as much as a TCP connection.
                                         .listen = "unix:" + dir + "/agents",
                                         .start_patience_ms = 0,   // the user is here to mend it
                                         .wait_for_nodes = false,  // its only agent starts after it
                                         .job_finished = [&signals] { signals.wake(); }});
    if (!coordinator) return fail(coordinator.error());
    ApiClient client((*coordinator)->api_address());
    if (const int code = wait_ready(client, signals); code != kDone) return code;
    auto job = begin(client, dir);
    if (!job) return fail(job.error());
    if (job->is_null()) {
      (*coordinator)->stop();
      return kDone;
    }
    const std::string name = text_at(*job, {"metadata", "name"});
    if (Status open = open_output(dir, *job); !open) return fail(open.error());

    agent::AgentOptions agent_options;
    agent_options.coordinators = {(*coordinator)->listen_address()};
    agent_options.slots = static_cast<uint32_t>(options_.slots);
    agent_options.work_dir = dir + "/agent";
    LocalAgent agent(agent_options, signals);
    LimitsNotice limits(client, !options_.quiet && has_memory_limit(*job));

    Follow end = follow(client, signals, ns_, name,
                        {.timeout_ms = options_.timeout_ms,
                         .color = options_.target.color,
                         .output = output_.get(),
                         .stopped = [&agent] { return agent.left(); },
                         .known = known_of(*job),
                         .quiet = options_.quiet,
                         .also = [&limits](const auto& clear) { limits.look(clear); }});
    int code = finish(client, signals, agent, dir, name, end);
    if (files_ && files_->failures() > 0) {
      keep_ = true;
      std::cerr
          << "muster: some files of --output or --error could not be written; all output is in "
          << logs_of(dir, end.job) << std::endl;
      if (code == kDone) code = kFailed;
    }
    // Nothing is left to run: stop the keeper too.
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

  // Called before the agent starts, so that output is seen from the first byte.
  Status open_output(const std::string& dir, const Json& job) {
    if (options_.shown == Shown::none && !files_) return Nothing{};
    const std::string logs = logs_of(dir, job);
    std::error_code error;
    std::filesystem::create_directories(logs, error);
    if (error) return Error{Errc::unavailable, "cannot make " + logs + ": " + error.message(), {}};
    OutputWishes wishes = output_wishes(options_, job, files_ ? &*files_ : nullptr);
    wishes.node = [dir] { return node_in(dir); };
    output_ = output_of_files(logs, job, std::move(wishes));
    return Nothing{};
  }

  void show_rest(const Json& job) {
    if (output_ == nullptr) return;
    output_->look(job, {}, true);
    output_->flush({});
  }

  // Creates the job, or resumes the one in this directory, or creates another round of it. Null:
  // there is nothing to run.
  Result<Json> begin(ApiClient& client, const std::string& dir) {
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
    std::optional<RunIdentity> claimed;
    if (job_) {
      RunIdentity wanted = *job_;
      if (!wanted.inputs.name.empty()) name_file(wanted.manifest, dir + "/" + wanted.inputs.name);
      auto now = claim(dir, std::move(wanted));
      if (!now) return now.error();
      claimed = std::move(*now);
    }
    if (there) return go_on(client, dir, items);
    if (!claimed || options_.retry) return invalid(dir + " has no job to retry");
    if (Status right = check_output(options_, claimed->manifest); !right) {
      unlink((dir + "/run.json").c_str());
      return right.error();
    }
    if (Status written = write_inputs(dir, job_->inputs); !written) return written.error();
    if (Status put = put_configs(client, configs_, ns_); !put) return put.error();
    auto job = document_ ? create_document(client, *document_, ns_, false)
                         : create_job(client, ns_, command_text(*claimed), false);
    if (!job) {
      // A refused job was never started: free the directory for a corrected manifest.
      if (exit_code(job.error().code) != kUnreachable) unlink((dir + "/run.json").c_str());
      return job.error();
    }
    return *job;
  }

  // Resumes the latest round of the job in this directory or, if all are over and a retry is
  // wanted, creates the next one.
  Result<Json> go_on(ApiClient& client, const std::string& dir, const Json& items) {
    auto rounds = rounds_of(client, dir, items);
    if (!rounds) return rounds.error();
    const Json& last = rounds->back();
    ns_ = text_at(last, {"metadata", "namespace"});
    const std::string name = text_at(last, {"metadata", "name"});
    if (Status right = check_output(options_, last); !right) return right.error();
    if (!options_.retry || end_of(last) == JobEnd::none) {
      if (auto resumed = resume(client, dir, name); !resumed) return resumed.error();
      std::cerr << "job/" << name << " resumed" << std::endl;
      return last;
    }
    const Json all = as_one(*rounds);
    const bool complete = rounds->size() == 1 && end_of(last) == JobEnd::complete;
    if (options_.retry->if_any && (complete || all_succeeded(all))) {
      std::cerr << "nothing to retry: job/" << root_of(last)
                << (complete ? " is Complete" : ": all of its indexes have succeeded") << std::endl;
      return Json();
    }
    auto made = create_round(client, ns_, *options_.retry, all);
    if (!made) return made.error();
    std::cerr << round_text(*made) << std::endl;
    return *made;
  }

  // The rounds of the one job that this directory belongs to, ordered by number.
  Result<std::vector<Json>> rounds_of(ApiClient& client, const std::string& dir,
                                      const Json& items) const {
    std::string root = options_.retry ? options_.retry->job : "";
    std::set<std::string> roots;
    for (const Json& item : items) {
      roots.insert(root_of(item));
      if (text_at(item, {"metadata", "name"}) == root) root = root_of(item);
    }
    if (!root.empty() && !roots.contains(root))
      return Error{Errc::not_found,
                   dir + " has no job/" + root + "; there is job/" + joined(roots, ", job/"),
                   {}};
    if (root.empty() && roots.size() > 1) {
      auto kept = kept_run(dir);
      if (kept) root = text_at(kept->manifest, {"metadata", "name"});
      if (!roots.contains(root))
        return Error{Errc::conflict,
                     dir + " has several jobs; name one: muster retry job/" + *roots.begin() +
                         " --data-dir " + shell_quoted(dir) + " (there is job/" +
                         joined(roots, ", job/") + ")",
                     {}};
    }
    if (root.empty()) root = *roots.begin();
    std::vector<Json> rounds;
    for (const Json& item : items) {
      if (root_of(item) != root) continue;
      auto whole = object(client, object_path(Kind::job, text_at(item, {"metadata", "namespace"}),
                                              text_at(item, {"metadata", "name"})));
      if (!whole) return whole.error();
      rounds.push_back(std::move(*whole));
    }
    std::stable_sort(rounds.begin(), rounds.end(),
                     [](const Json& a, const Json& b) { return round_of(a) < round_of(b); });
    return rounds;
  }

  static std::string joined(const std::set<std::string>& words, const char* between) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
    return out;
  }

  static std::string stopped_mark(const std::string& dir) { return dir + "/stopped"; }

  // Suspends the job, so that its pods end without counting, and waits for them to end. A mark
  // records that we suspended it, so that the next run resumes it, but not a job suspended by its
  // owner.
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
    drain_stderr();  // what was logged before this report stands before it
    switch (end.how) {
      case Followed::complete:
      case Followed::failed:
        keep_ = options_.keep || end.how == Followed::failed;
        if (const auto why = start_failure(end.job); why && options_.completions > 0) {
          keep_ = options_.keep;
          return fail(exit_code_of(options_, client, ns_, end), *why);
        }
        if (options_.quiet && end.how == Followed::complete) return kDone;
        raw_err() << summary_text(
                         client, ns_, end.job, Paint(options_.target.color, STDERR_FILENO),
                         [&](const Failures&) { return "full output: " + logs_of(dir, end.job); })
                  << std::flush;
        return exit_code_of(options_, client, ns_, end);
      case Followed::interrupted:
      case Followed::timeout: {
        keep_ = true;
        const bool by_signal = end.how == Followed::interrupted;
        std::cerr << stop_text(end.how) << ": stopping job/" << name
                  << "; its pods get SIGTERM and their grace period, Ctrl-C kills them"
                  << std::endl;
        suspend(client, signals, agent, dir, end.job, name);
        agent.drain();
        while (!agent.left()) {
          if (signals.next(kLook) != 0) agent.kill();
        }
        show_rest(end.job);
        std::cerr << "to continue, run it again with --data-dir " << shell_quoted(dir) << std::endl;
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
  std::string ns_;
  std::optional<RunIdentity> job_;
  std::optional<Document> document_;  // absent: the job was made from a command
  std::vector<Document> configs_;
  std::optional<PodFiles> files_;
  std::unique_ptr<PodOutput> output_;  // null: do not show output
  std::optional<Ephemeral> temporary_;
  bool keep_ = false;  // keep the temporary directory
};

}  // namespace

int run_here(const RunOptions& options, WantedJob job) {
  const std::string ns = job.ns;
  return Run(options, ns, std::move(job)).run();
}

int retry_here(const RunOptions& options) {
  RunOptions here = options;
  auto kept = kept_run(here.data_dir);  // creates nothing in a directory that is not a run's
  if (!kept) return fail(kept.error());
  if (here.slots == 0) here.slots = kept->slots;
  if (here.slots == 0) here.slots = static_cast<int>(usable_cpu_count());
  return Run(here, here.target.ns, std::nullopt).run();
}

std::optional<PodFiles> wanted_files(const RunOptions& options) {
  if (!options.files && !options.err_files) return std::nullopt;
  return PodFiles(options.files, options.err_files);
}

OutputWishes output_wishes(const RunOptions& options, const Json& job, PodFiles* files) {
  OutputWishes wishes{
      .prefixed = prefixed(options.shown, job), .in_order = options.keep_order, .files = files};
  if (options.shown == Shown::none && !options.files) wishes.err = true;  // which has a file
  return wishes;
}

Status check_output(const RunOptions& options, const Json& job) {
  const bool indexed = is_indexed(job);
  if (options.keep_order && !indexed)
    return invalid("--keep-order: pods of a NonIndexed job have no order");
  const auto files = wanted_files(options);
  if (!files) return Nothing{};
  return files->prepare(text_at(job, {"metadata", "name"}), indexed, has_several_pods(job));
}

int exit_code_of(const RunOptions& options, ApiClient& client, const std::string& ns,
                 const Follow& end) {
  if (end.how == Followed::complete) return kDone;
  if (options.completions != 1 && !options.mpi) return kFailed;
  int64_t code = 0;
  const std::string name = text_at(end.job, {"metadata", "name"});
  (void)each_attempt(client, ns, name, "failed=true&index=0",
                     [&code](const Json& attempt) { code = number_at(attempt, {"exitCode"}); });
  return code > 0 && code < 256 ? static_cast<int>(code) : static_cast<int>(kFailed);
}

std::optional<std::string> start_failure(const Json& job) {
  const Json& failed = condition_of(job, "Failed");
  if (text_at(failed, {"reason"}) != "StartFailure") return std::nullopt;
  std::string message = text_at(failed, {"message"});
  if (!message.empty()) message[0] = static_cast<char>(std::tolower(message[0]));
  return "job/" + text_at(job, {"metadata", "name"}) + " Failed: " + message;
}

}  // namespace muster::cli
