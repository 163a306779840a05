#include "core/job/fold/text.hpp"

#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace muster::core {

namespace {

std::string pod_text(JobId job, PodKey pod) {
  return to_string(PodId{job, pod.index, pod.attempt});
}

std::string node_text(NodeId node) {
  return "n" + std::to_string(node);
}

// A message comes from a process or a kernel and may contain control characters.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

// "HEAD a, b, c", or HEAD alone if the list is empty.
template <class List, class F>
std::string listed(std::string head, const List& list, F item) {
  const char* gap = " ";
  for (const auto& one : list) {
    head += gap + item(one);
    gap = ", ";
  }
  return head;
}

std::string slots_text(const std::map<NodeId, uint32_t>& slots, std::string head) {
  return listed(std::move(head), slots, [](const auto& one) {
    return node_text(one.first) + "=" + std::to_string(one.second);
  });
}

template <class One>
std::string placed_text(JobId job, const std::vector<One>& pods, std::string head) {
  return listed(std::move(head), pods, [job](const auto& one) {
    return pod_text(job, one.pod) + " " + node_text(one.node);
  });
}

std::string progress_text(const Progress& progress) {
  std::string text;
  if (!progress.passed.empty()) text += " passed=" + progress.passed.text();
  if (!progress.failed.empty()) text += " failed=" + progress.failed.text();
  return text;
}

std::string start_text(std::optional<int32_t> pid, int32_t restarts) {
  std::string text;
  if (pid) text += " pid=" + std::to_string(*pid);
  if (restarts != 0) text += " restarts=" + std::to_string(restarts);
  return text;
}

std::optional<int32_t> pid_of(const PodsEnded::One& one) {
  return one.start ? std::optional(one.start->pid) : std::nullopt;
}

std::string end_text(EndCause cause, int32_t exit_code, int32_t signal,
                     const std::string& message) {
  std::string text = " exit=" + std::to_string(exit_code);
  if (signal != 0) text += " signal=" + std::to_string(signal);
  if (cause != EndCause::exited) text += " cause=" + std::string(name(cause));
  if (!message.empty()) text += " message=" + quoted(message);
  return text;
}

std::string cpus_text(const std::string& cpus) {
  return cpus.empty() ? "" : " cpus=" + cpus;
}

std::string readiness_text(Readiness readiness) {
  return readiness == Readiness::ready ? "" : " " + std::string(name(readiness));
}

// " containers ended:exit 0,running,unborn"
std::string containers_text(const std::vector<ContainerNow>& containers) {
  std::string text;
  for (const ContainerNow& one : containers) {
    text += (text.empty() ? " containers " : ",") + std::string(name(one.phase));
    if (one.last) text += ":exit " + std::to_string(one.last->exit_code);
  }
  return text;
}

std::string pods_text(JobId job, const std::vector<PodKey>& pods, std::string head) {
  return listed(std::move(head), pods, [job](PodKey pod) { return pod_text(job, pod); });
}

std::string condition_text(const PodCondition& c) {
  return " " + c.type + "=" + c.status + (c.reason.empty() ? "" : "/" + c.reason);
}

std::string grace_text(const std::optional<Millis>& grace_ms) {
  return grace_ms ? " grace=" + std::to_string(*grace_ms) + "ms" : "";
}

std::string meta_text(const PodMetaChange& change) {
  return std::string(change.label ? " label " : " annotation ") + change.key +
         (change.value ? "=" + quoted(*change.value) : std::string("-"));
}

// " memory=+1 time=+2", each as far as there is one.
std::string steps_text(Steps steps, const char* opening = "") {
  if (!steps.any()) return "";
  std::string text = opening;
  if (steps.memory > 0) text += " memory=+" + std::to_string(steps.memory);
  if (steps.time > 0) text += " time=+" + std::to_string(steps.time);
  return text;
}

struct EventText {
  JobId job;

  std::string operator()(const SlotsGranted& e) {
    return slots_text(e.slots, "SlotsGranted") + steps_text(e.steps);
  }
  std::string operator()(const PodsReported& e) {
    std::string text = "PodsReported " + node_text(e.node) + " token=" + std::to_string(e.token);
    for (const auto& one : e.starts)
      text += ", start " + pod_text(job, one.pod) + start_text(one.pid, one.restarts) +
              readiness_text(one.readiness) + cpus_text(one.cpus);
    for (const auto& one : e.ends)
      text += ", end " + pod_text(job, one.pod) +
              end_text(one.cause, one.exit_code, one.signal, one.message);
    return text;
  }
  std::string operator()(const NodeLost& e) {
    return "NodeLost " + node_text(e.node) + " cause=" + std::string(name(e.cause));
  }
  std::string operator()(const NodeRegistered& e) {
    return listed("NodeRegistered " + node_text(e.node) + " knows", e.known,
                  [this](PodKey pod) { return pod_text(job, pod); });
  }
  std::string operator()(const NodeReady& e) { return "NodeReady " + node_text(e.node); }
  std::string operator()(const DependencyHasEnded& e) {
    return "DependencyHasEnded token=" + std::to_string(e.token) + " j" + std::to_string(e.job) +
           " " + std::string(name(e.how)) + (e.progress ? progress_text(*e.progress) : "");
  }
  std::string operator()(const DependencyHasAdvanced& e) {
    return "DependencyHasAdvanced token=" + std::to_string(e.token) + " j" + std::to_string(e.job) +
           progress_text(*e.progress);
  }
  std::string operator()(const NowhereElse&) { return "NowhereElse"; }
  std::string operator()(const NodeHeard& e) {
    return listed("NodeHeard " + node_text(e.node) + " ended", e.ended,
                  [this](PodKey pod) { return pod_text(job, pod); });
  }
  std::string operator()(const TimePassed&) { return "TimePassed"; }
  std::string operator()(const JobDeletion& e) {
    return std::string("JobDeletion ") + (e.orphan       ? "orphan"
                                          : e.background ? "background"
                                                         : "foreground");
  }
  std::string operator()(const OwnerUpdate& e) {
    return "OwnerUpdate generation=" + std::to_string(e.object->meta.generation);
  }
  std::string operator()(const PodsDeletion& e) {
    constexpr const char* kWhy[] = {"", " eviction", " preemption", " taint"};
    return pods_text(job, e.pods, "PodsDeletion") + kWhy[static_cast<int>(e.why)] +
           grace_text(e.grace_ms);
  }
  std::string operator()(const Preempted& e) {
    return slots_text(e.slots, "Preempted") + steps_text(e.steps);
  }
  std::string operator()(const Tainted& e) {
    std::string text = "Tainted";
    for (NodeId node : e.nodes) text += " n" + std::to_string(node);
    return text + steps_text(e.steps);
  }
  std::string operator()(const PodConditionsWrite& e) {
    std::string text = "PodConditionsWrite " + pod_text(job, e.pod);
    for (const PodCondition& condition : e.conditions) text += condition_text(condition);
    for (const PodMetaChange& change : e.meta) text += meta_text(change);
    return text;
  }
  std::string operator()(const HoldChange& e) {
    return std::string(e.hold ? "HoldChange hold " : "HoldChange release ") + e.by +
           (e.by_operator ? " (operator)" : "") + (e.reason.empty() ? "" : " " + quoted(e.reason));
  }
  std::string operator()(const OverridesChange& e) {
    return "OverridesChange " + overrides_words(e.next) + " " + e.by;
  }
  std::string operator()(const Cancellation& e) {
    return "Cancellation" + (e.indexes ? " " + e.indexes->text() : std::string()) + " " + e.by;
  }
  std::string operator()(const StatusWrite& e) {
    return (e.conditions ? "StatusWrite conditions " : "StatusWrite ") + quoted(e.json);
  }
};

std::string action_text(FailureAction action) {
  constexpr const char* kActions[] = {"", " Count", " Ignore", " FailIndex", " FailJob"};
  return kActions[static_cast<int>(action)];
}

struct RecordText {
  JobId job;

  std::string this_job() const { return "j" + std::to_string(job); }

  std::string operator()(const JobAdmitted& r) {
    std::string text = "JobAdmitted " + this_job();
    for (const Dependency& one : r.after)
      text += " after=" + std::string(name(one.after.needed)) + ":j" + std::to_string(one.job);
    return text;
  }
  std::string operator()(const DependencyEnded& r) {
    return "DependencyEnded " + this_job() + " j" + std::to_string(r.job) + " " +
           std::string(name(r.how));
  }
  std::string operator()(const DependencyAdvanced& r) {
    return "DependencyAdvanced " + this_job() + " j" + std::to_string(r.job) +
           progress_text(r.more);
  }
  std::string operator()(const IndexesFailed& r) {
    return "IndexesFailed " + this_job() + " " + r.indexes.text();
  }
  std::string operator()(const JobSpecChanged& r) {
    std::string text = "JobSpecChanged " + this_job() +
                       " generation=" + std::to_string(r.generation) +
                       " parallelism=" + std::to_string(r.parallelism);
    if (r.completions) text += " completions=" + std::to_string(*r.completions);
    return text;
  }
  std::string operator()(const JobStarted&) { return "JobStarted " + this_job(); }
  std::string operator()(const PodsCreated& r) {
    return listed("PodsCreated", r.runs, [this](const PodsCreated::Run& run) {
      std::string text = this_job() + "/" + std::to_string(run.first);
      if (run.count > 1) text += "-" + std::to_string(run.first + run.count - 1);
      text += "#" + std::to_string(run.attempt);
      if (run.failures != 0) text += " failures=" + std::to_string(run.failures);
      if (run.ignored != 0) text += " ignored=" + std::to_string(run.ignored);
      if (run.disruptions != 0) text += " disruptions=" + std::to_string(run.disruptions);
      if (run.deferred_counted != Counted::not_yet)
        text += " deferred=" + std::string(name(run.deferred_counted));
      return text;
    });
  }
  std::string operator()(const PodsBound& r) {
    return listed("PodsBound", r.bindings, [this](const PodsBound::Binding& one) {
      return pod_text(job, one.pod) + " " + node_text(one.node);
    });
  }
  std::string operator()(const PodsStarted& r) {
    return listed("PodsStarted", r.starts, [this](const PodsStarted::Start& one) {
      return pod_text(job, one.pod) + start_text(one.pid, one.restarts) +
             readiness_text(one.readiness) + cpus_text(one.cpus) + containers_text(one.containers);
    });
  }
  std::string operator()(const PodsEnded& r) {
    std::string text = listed("PodsEnded", r.ends, [this](const PodsEnded::One& one) {
      return pod_text(job, one.pod) + start_text(pid_of(one), one.restarts) +
             end_text(one.end.cause, one.end.exit_code, one.end.signal, one.end.message) +
             " counted=" + std::string(name(one.counted)) +
             (one.fails_index ? " fails-index" : "") + action_text(one.action) +
             steps_text(one.raised, " raised");
    });
    if (r.backoff_failures != 0)
      text += "; backoff failures=" + std::to_string(r.backoff_failures) +
              " last=" + instant_text(r.backoff_last_ms);
    return text;
  }
  std::string operator()(const PodsStopping& r) {
    return listed(r.by_job ? "PodsStopping" : "PodsStopping by others", r.pods,
                  [this](const PodsStopping::One& one) {
                    return pod_text(job, one.pod) + " counted=" + std::string(name(one.counted)) +
                           (one.fails_index ? " fails-index" : "") + grace_text(one.grace_ms);
                  });
  }
  std::string operator()(const PodConditionSet& r) {
    return "PodConditionSet " + pod_text(job, r.pod) + condition_text(r.condition);
  }
  std::string operator()(const PodsRemoved& r) { return pods_text(job, r.pods, "PodsRemoved"); }
  std::string operator()(const JobSuspended& r) {
    return "JobSuspended " + this_job() + (r.suspended ? " True" : " False");
  }
  std::string operator()(const StatusWritten& r) {
    return "StatusWritten " + this_job() + " " + quoted(r.json);
  }
  std::string operator()(const ConditionsWritten& r) {
    return "ConditionsWritten " + this_job() + " " + quoted(r.json);
  }
  std::string operator()(const PodMetaSet& r) {
    std::string text = "PodMetaSet " + pod_text(job, r.pod);
    for (const PodMetaChange& change : r.changes) text += meta_text(change);
    return text;
  }
  std::string operator()(const FinishDecided& r) {
    return "FinishDecided " + this_job() + (r.success ? " success " : " failure ") +
           std::string(name(r.reason)) + " " + quoted(r.message);
  }
  std::string operator()(const JobFinished&) { return "JobFinished " + this_job(); }
  std::string operator()(const JobDeleted& r) {
    return "JobDeleted " + this_job() +
           (r.orphan       ? " orphan"
            : r.waits      ? " waits"
            : r.background ? " background"
                           : " foreground");
  }
  std::string operator()(const JobHeld& r) {
    return "JobHeld " + this_job() + " by " + r.by + (r.by_operator ? " (operator)" : "") +
           (r.reason.empty() ? "" : " " + quoted(r.reason));
  }
  std::string operator()(const JobReleased& r) {
    return "JobReleased " + this_job() + " by " + r.by;
  }
  std::string operator()(const OverridesSet& r) {
    return "OverridesSet " + this_job() + " " + overrides_words(r.overrides) + " by " + r.by;
  }
  std::string operator()(const JobCancelled& r) {
    return "JobCancelled " + this_job() + " by " + r.by;
  }
  std::string operator()(const IndexesCancelled& r) {
    return "IndexesCancelled " + this_job() + " " + r.indexes.text() + " by " + r.by;
  }
  std::string operator()(const JobForgotten&) { return "JobForgotten " + this_job(); }
  std::string operator()(const GangBroken& r) {
    return "GangBroken by " + pod_text(job, r.how.by) + (r.how.whole ? " whole" : "") +
           (r.how.leader_pays ? " leader-pays " : " ") + quoted(r.how.why);
  }
  std::string operator()(const IndexLimitsSet& r) {
    return "IndexLimitsSet " + this_job() + (r.on ? " on" : " off");
  }
};

struct EffectText {
  JobId job;

  std::string operator()(const LaunchPods& e) { return placed_text(job, e.pods, "LaunchPods"); }
  std::string operator()(const KillPods& e) { return placed_text(job, e.pods, "KillPods"); }
  std::string operator()(const LimitPods& e) {
    return listed("LimitPods", e.pods, [this](const LimitPods::One& one) {
      return pod_text(job, one.pod) + "@" + node_text(one.node) + " " +
             (one.limit_ms ? duration_text(*one.limit_ms) : "unlimited");
    });
  }
  std::string operator()(const AckReport& e) { return "AckReport " + std::to_string(e.token); }
  std::string operator()(const Answer& e) {
    constexpr const char* kOutcome[] = {"", " conflict", " not-found"};
    return "Answer " + std::to_string(e.token) + kOutcome[static_cast<int>(e.outcome)];
  }
  std::string operator()(const AskSlots& e) {
    std::string text = "AskSlots " + std::to_string(e.wanted);
    for (const auto& [steps, pods] : e.more)
      text += ", " + std::to_string(pods) + steps_text(steps);
    return text;
  }
  std::string operator()(const FreeSlots& e) {
    std::string text = slots_text(e.slots, "FreeSlots");
    for (const auto& [node, failed] : e.avoid) text += " avoid " + node_text(node);
    return text + steps_text(e.steps);
  }
  std::string operator()(const AnswerReconcile& e) {
    return listed("AnswerReconcile " + node_text(e.node) + " end", e.end,
                  [this](PodKey pod) { return pod_text(job, pod); });
  }
  std::string operator()(const AskNodes& e) {
    return listed("AskNodes", e.nodes,
                  [](const AskNodes::One& one) { return node_text(one.node); });
  }
  std::string operator()(const WakeAt& e) { return "WakeAt " + instant_text(e.at_ms); }
  std::string operator()(const PodsClosed& e) {
    return listed("PodsClosed", e.pods, [this](PodKey pod) { return pod_text(job, pod); });
  }
  std::string operator()(const JobOver& e) {
    std::string text = "JobOver j" + std::to_string(job) + (e.forgotten ? " forgotten" : "");
    return e.wake_ms ? text + " wake=" + instant_text(*e.wake_ms) : text;
  }
};

}  // namespace

std::string instant_text(Millis at_ms) {
  constexpr Millis kDayMs = 86'400'000;
  Millis day = at_ms / kDayMs, in_day = at_ms % kDayMs;
  if (in_day < 0) {
    in_day += kDayMs;
    --day;
  }
  // Civil date of a day number: years begin in March, so the leap day is the last of its year.
  Millis shifted = day + 719'468;
  Millis era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  Millis day_of_era = shifted - era * 146'097;
  Millis year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  Millis day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  Millis from_march = (5 * day_of_year + 2) / 153;
  Millis date = day_of_year - (153 * from_march + 2) / 5 + 1;
  Millis month = from_march < 10 ? from_march + 3 : from_march - 9;
  Millis year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  std::array<char, 96> text;
  std::snprintf(text.data(), text.size(), "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03lldZ",
                static_cast<long long>(year), static_cast<long long>(month),
                static_cast<long long>(date), static_cast<long long>(in_day / 3'600'000),
                static_cast<long long>(in_day / 60'000 % 60),
                static_cast<long long>(in_day / 1000 % 60), static_cast<long long>(in_day % 1000));
  return text.data();
}

std::string_view name(FailureAction action) {
  switch (action) {
    case FailureAction::none:
      return "";
    case FailureAction::count:
      return "Count";
    case FailureAction::ignore:
      return "Ignore";
    case FailureAction::fail_index:
      return "FailIndex";
    case FailureAction::fail_job:
      return "FailJob";
  }
  return "";
}

std::string_view name(Counted counted) {
  switch (counted) {
    case Counted::not_yet:
      return "not-yet";
    case Counted::succeeded:
      return "succeeded";
    case Counted::failed:
      return "failed";
    case Counted::ignored:
      return "ignored";
    case Counted::released:
      return "released";
    case Counted::cancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string_view name(EndCause cause) {
  switch (cause) {
    case EndCause::exited:
      return "exited";
    case EndCause::killed:
      return "killed";
    case EndCause::never_started:
      return "never-started";
    case EndCause::start_failed:
      return "start-failed";
    case EndCause::keeper_lost:
      return "keeper-lost";
    case EndCause::agent_stopped:
      return "agent-stopped";
    case EndCause::fenced:
      return "fenced";
    case EndCause::deadline:
      return "deadline";
    case EndCause::out_of_memory:
      return "out-of-memory";
    case EndCause::node_lost:
      return "node-lost";
    case EndCause::node_deleted:
      return "node-deleted";
    case EndCause::evicted:
      return "evicted";
    case EndCause::returned:
      return "returned";
    case EndCause::worker_unreachable:
      return "worker-unreachable";
  }
  return "unknown";
}

std::string_view name(Readiness readiness) {
  switch (readiness) {
    case Readiness::ready:
      return "ready";
    case Readiness::initializing:
      return "initializing";
    case Readiness::not_ready:
      return "not-ready";
  }
  return "unknown";
}

std::string_view name(ContainerPhase phase) {
  switch (phase) {
    case ContainerPhase::unborn:
      return "unborn";
    case ContainerPhase::waiting:
      return "waiting";
    case ContainerPhase::running:
      return "running";
    case ContainerPhase::ended:
      return "ended";
  }
  return "unknown";
}

std::string to_text(JobId job, const Event& event) {
  return std::visit(EventText{job}, event);
}

std::string_view record_name(const Record& record) {
  constexpr std::string_view kNames[] = {
      "JobAdmitted",     "JobSpecChanged",     "JobStarted",        "PodsCreated",
      "PodsBound",       "PodsStarted",        "PodsEnded",         "PodsStopping",
      "PodConditionSet", "PodsRemoved",        "JobSuspended",      "StatusWritten",
      "FinishDecided",   "JobFinished",        "JobDeleted",        "JobForgotten",
      "IndexLimitsSet",  "PodMetaSet",         "ConditionsWritten", "GangBroken",
      "DependencyEnded", "DependencyAdvanced", "IndexesFailed",     "JobHeld",
      "JobReleased",     "OverridesSet",       "JobCancelled",      "IndexesCancelled"};
  static_assert(std::size(kNames) == std::variant_size_v<Record>);
  return kNames[record.index()];
}

std::string to_text(JobId job, const Record& record) {
  return std::visit(RecordText{job}, record);
}

std::string to_text(JobId job, const Effect& effect) {
  return std::visit(EffectText{job}, effect);
}

std::string status_text(const Job& job) {
  const JobState& s = job.state();
  std::string text =
      "active=" + std::to_string(job.active()) + " ready=" + std::to_string(job.ready()) +
      " terminating=" + std::to_string(job.terminating()) +
      " succeeded=" + std::to_string(job.succeeded()) + " failed=" + std::to_string(s.failed);
  if (!s.deferred.empty()) text += " deferred=" + std::to_string(s.deferred.size());
  if (!s.completed.empty()) text += " completed=" + s.completed.text();
  if (!s.failed_indexes.empty()) text += " failed-indexes=" + s.failed_indexes.text();
  for (const auto& condition : s.conditions) text += " " + std::string(name(condition.type));
  return text;
}

}  // namespace muster::core
