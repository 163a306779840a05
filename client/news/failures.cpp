#include "client/news/failures.hpp"

#include "base/text/exit_text.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/own_files.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"
#include "core/index_set.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace muster::cli {
namespace {

constexpr size_t kSaidBytes = 160;    // per line of output and per cause
constexpr int64_t kBackoffLimit = 6;  // the default

const Json kNoState;

// How the first container ended; null if it has not.
const Json& terminated(const Json& pod) {
  const Json& statuses = at(pod, {"status", "containerStatuses"});
  return statuses.is_array() && !statuses.empty() ? at(statuses.front(), {"state", "terminated"})
                                                  : kNoState;
}

bool earlier(const Failure& a, const Failure& b) {
  return std::tie(a.ended, a.index, a.attempt, a.pod) <
         std::tie(b.ended, b.index, b.attempt, b.pod);
}

// Whether the job failed only because it, or some of its indexes, were cancelled.
bool only_cancelled(const Json& job) {
  const Json& failed = condition_of(job, "Failed");
  return text_at(failed, {"reason"}) == "Cancelled" ||
         text_at(failed, {"message"}) == "Job has cancelled indexes";
}

// Keeps the last failure of each index, and only of failed indexes if there are any: retries that
// succeeded are not why the job failed.
void keep_telling(std::vector<Failure>& all, const Json& job) {
  std::map<int64_t, Failure> last;
  const core::IndexSet failed = failed_indexes(job);
  const bool none = failed.empty() && only_cancelled(job);
  for (Failure& f : all) {
    if (!f.index) return;  // NonIndexed: keep every pod
    if (none || (!failed.empty() && !failed.contains(static_cast<uint32_t>(*f.index)))) continue;
    const auto [there, fresh] = last.emplace(*f.index, f);
    if (!fresh && there->second.attempt < f.attempt) there->second = f;
  }
  all.clear();
  for (auto& [index, failure] : last) all.push_back(std::move(failure));
}

// Whether a rule of the pod failure policy can fail an index.
bool fails_indexes(const Json& job) {
  const Json& rules = at(job, {"spec", "podFailurePolicy", "rules"});
  return rules.is_array() && std::any_of(rules.begin(), rules.end(), [](const Json& rule) {
           return text_at(rule, {"action"}) == "FailIndex";
         });
}

// The jobs that this one follows index by index: "a, b". An index fails without an attempt if it
// fails in one of them.
std::string followed_jobs(const Json& job) {
  std::string names;
  for (const core::After& one : awaited_jobs(job))
    if (one.needed == core::Needed::each) names += (names.empty() ? "" : ", ") + one.job;
  return names;
}

// "index 7 failed 3 times,", "tasks 1,2 failed 2 times each,"; "200 indexes failed" if the list is
// long. The number of times is left out if the pod failure policy may have failed them, or an
// index of another job.
std::string failed_indexes_text(const Json& job) {
  constexpr size_t kListBytes = 60;
  const core::IndexSet set = failed_indexes(job);
  const auto tasks = tasks_of(job);
  std::string text = named_indexes(set, tasks);
  if (text.size() > kListBytes) text = std::to_string(set.size()) + (tasks ? " tasks" : " indexes");
  text += " failed";
  const Json& limit = at(job, {"spec", "backoffLimitPerIndex"});
  if (fails_indexes(job) || !followed_jobs(job).empty() || !limit.is_number_integer()) return text;
  const int64_t times = limit.get<int64_t>() + 1;
  return text + " " + std::to_string(times) + (times == 1 ? " time" : " times") +
         (set.size() == 1 ? "," : " each,");
}

}  // namespace

std::string cause_of(const Json& pod) {
  const Json& end = terminated(pod);
  std::string text;
  if (end.is_object()) {
    text = exit_text(number_at(end, {"exitCode"}), number_at(end, {"signal"}));
    const std::string reason = text_at(end, {"reason"});
    if (!reason.empty() && reason != "Error" && reason != "Completed") text += ", " + reason;
  }
  if (!text.empty() && text_at(pod, {"status", "reason"}) == "DeadlineExceeded")
    text += ", DeadlineExceeded";
  const Json& disruption = condition_of(pod, "DisruptionTarget");
  if (!disruption.is_null()) text += (text.empty() ? "" : ", ") + text_at(disruption, {"reason"});
  std::string message = text_at(end, {"message"});
  if (message.empty()) message = text_at(pod, {"status", "message"});
  if (message.empty()) message = text_at(disruption, {"message"});
  if (text.empty()) text = text_at(pod, {"status", "reason"});
  if (!message.empty()) text += (text.empty() ? "" : ": ") + message;
  return text.empty() ? "unknown" : text;
}

Failure failure_of(const Json& pod) {
  Failure f;
  f.pod = text_at(pod, {"metadata", "name"});
  f.node = text_at(pod, {"spec", "nodeName"});
  f.cause = cause_of(pod);
  f.index = index_of(pod);
  f.attempt = attempt_of(pod);
  f.ended = text_at(terminated(pod), {"finishedAt"});
  f.runs = runs_of(pod);
  return f;
}

std::vector<std::string> last_words(ApiClient& client, const std::string& ns,
                                    const std::string& pod, size_t lines) {
  for (const char* stream : {"Stderr", "Stdout"}) {
    auto log = client.get(object_path(Kind::pod, ns, pod) + "/log?stream=" + stream +
                              "&tailLines=" + std::to_string(lines),
                          "*/*");
    if (!log) return {};
    if (log->ok() && !log->body.empty()) return last_lines(log->body, lines);
  }
  return {};
}

// Of the last of these files that can be read here and is not empty.
std::vector<std::string> last_words(const OwnFiles& files, const std::vector<std::string>& paths,
                                    size_t lines) {
  std::string text;
  for (auto path = paths.rbegin(); path != paths.rend() && text.empty(); ++path)
    if (Status read = files.read(*path, lines,
                                 [&text](std::string_view part) {
                                   text += part;
                                   return true;
                                 });
        !read)
      text.clear();
  return last_lines(text, lines);
}

Result<Failures> failures_of(ApiClient& client, const std::string& ns, const Json& job, size_t max,
                             size_t lines) {
  const std::string name = text_at(job, {"metadata", "name"});
  auto pods = pods_of(client, ns, name, "", "status.phase=Failed");
  if (!pods) return pods.error();
  Failures out;
  for (const Json& pod : *pods) out.shown.push_back(failure_of(pod));
  std::sort(out.shown.begin(), out.shown.end(), earlier);
  std::erase_if(out.shown, [cancelled = cancelled_indexes(job)](const Failure& f) {
    return f.index && cancelled.contains(static_cast<uint32_t>(*f.index));
  });
  if (end_of(job) == JobEnd::failed && number_at(job, {"spec", "completions"}) > 0)
    keep_telling(out.shown, job);
  out.all = out.shown.size();
  if (out.shown.size() > max) out.shown.resize(max);
  if (!out.shown.empty()) {
    const JobInputs inputs(job);
    const auto tasks = tasks_of(job);
    for (Failure& f : out.shown) {
      if (f.index && tasks) f.task = tasks->number(*f.index);
      if (f.index && !f.task) f.input = inputs.of(*f.index).value_or("");
    }
  }
  const OwnFiles files(job);
  for (Failure& f : out.shown) {
    f.last_lines = last_words(client, ns, f.pod, lines);
    if (f.last_lines.empty() && files.any() && f.index && f.attempt)
      f.last_lines = last_words(files, files.paths(*f.index, *f.attempt, f.node), lines);
  }
  return out;
}

namespace {

// With OnFailure, restarts count against the limit (job-semantics 5.4). The pods that are ended
// because of it have failed, too: if they exceed the limit, either may have been the cause.
std::string backoff_limit_text(const Json& job) {
  const int64_t most = number_at(job, {"spec", "backoffLimit"}, kBackoffLimit);
  const std::string field = "spec.backoffLimit (" + std::to_string(most) + ")";
  std::string failed = "more pods failed than " + field + " allows";
  if (text_at(job, {"spec", "template", "spec", "restartPolicy"}) != "OnFailure") return failed;
  if (number_at(job, {"status", "failed"}) > most)
    return failed + ", or restarts of their containers reached it";
  return most <= 1 ? "a container was restarted, which reaches " + field
                   : "containers were restarted at least " + std::to_string(most) +
                         " times, which reaches " + field;
}

}  // namespace

std::string rule_text(const Json& job) {
  const std::string reason = text_at(condition_of(job, "Failed"), {"reason"});
  const auto limit = [&job](const std::string& what, const char* field) {
    const Json& value = at(job, {"spec", field});
    return what + " spec." + field + (value.is_number() ? " (" + dumped(value) + ")" : "") +
           " allows";
  };
  if (reason == "BackoffLimitExceeded") return backoff_limit_text(job);
  if (reason == "DeadlineExceeded")
    return limit("it was active longer than", "activeDeadlineSeconds");
  if (reason == "MaxFailedIndexesExceeded")
    return limit("more indexes failed than", "maxFailedIndexes");
  if (only_cancelled(job)) return "";
  if (reason == "FailedIndexes") {
    const std::string followed = followed_jobs(job);
    return limit(failed_indexes_text(job) + " more than", "backoffLimitPerIndex") +
           (fails_indexes(job) ? ", or by a FailIndex rule" : "") +
           (followed.empty()
                ? ""
                : ", or never ran, because the same index of job " + followed + " did not succeed");
  }
  if (reason == "PodFailurePolicy")
    return "a rule of spec.podFailurePolicy with action FailJob matched";
  return "";
}

std::string more_text(const Failures& failures, const std::string& job, const std::string& ns) {
  const std::string ns_flag = ns == "default" ? "" : " -n " + ns;
  if (failures.shown.empty()) return "more: muster describe job " + job + ns_flag;
  const Failure& f = failures.shown.front();
  if (!f.index) return "more: muster logs " + f.pod + ns_flag;
  return "more: muster logs job/" + job + (f.task ? " --task " : " --index ") +
         std::to_string(f.task.value_or(*f.index)) +
         (f.attempt ? " --attempt " + std::to_string(*f.attempt) : "") + ns_flag;
}

std::string failures_text(const Failures& failures, const std::string& indent) {
  std::vector<std::vector<std::string>> rows;
  const bool indexed = !failures.shown.empty() && failures.shown.front().index.has_value();
  const bool tasks = indexed && failures.shown.front().task.has_value();
  const bool inputs =
      std::ranges::any_of(failures.shown, [](const Failure& f) { return !f.input.empty(); });
  if (indexed && inputs) {
    rows.push_back({"INDEX", "INPUT", "ATTEMPT", "NODE", "CAUSE"});
  } else if (indexed) {
    rows.push_back({tasks ? "TASK" : "INDEX", "ATTEMPT", "NODE", "CAUSE"});
  } else {
    rows.push_back({"POD", "NODE", "CAUSE"});
  }
  for (const Failure& f : failures.shown) {
    const std::string node = f.node.empty() ? "<none>" : f.node;
    if (indexed) {
      rows.push_back({std::to_string(f.task.value_or(f.index.value_or(0))),
                      f.attempt ? std::to_string(*f.attempt) : "?", node,
                      cut(f.cause, kSaidBytes)});
      if (inputs) rows.back().insert(rows.back().begin() + 1, cut(f.input, kInputShown));
    } else {
      rows.push_back({f.pod, node, cut(f.cause, kSaidBytes)});
    }
  }
  const std::string table = aligned(rows, indent);
  std::string out;
  size_t row = 0;
  for (size_t from = 0; from < table.size(); ++row) {
    const size_t end = table.find('\n', from) + 1;
    out += table.substr(from, end - from);
    if (row > 0) {
      if (const std::string& runs = failures.shown[row - 1].runs; !runs.empty())
        out += indent + "    restarted after: " + runs + "\n";
      for (const std::string& line : failures.shown[row - 1].last_lines)
        out += indent + "    | " + cut(line, kSaidBytes) + "\n";
    }
    from = end;
  }
  if (failures.all > failures.shown.size()) {
    out += indent + "... and " + std::to_string(failures.all - failures.shown.size()) + " more\n";
  }
  return out;
}

}  // namespace muster::cli
