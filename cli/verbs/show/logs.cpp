// muster logs: what pods wrote, stdout and stderr in the order of the times that their node noted
// (with -f, of a running pod, as they arrive).
//
// For a job, -f follows all attempts of all its pods until it is over.
//
// The log of an index is looked up by attempt, so it is found even when the Pod is no longer kept.
// With several pods, each line starts with its index, or the task of an array, and attempt
// ("17#2 | "), in a NonIndexed job with the pod's name. Files that pods write to in place of their
// logs are read on this machine.
#include "cli/verbs/show/logs.hpp"

#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/follow.hpp"
#include "client/follow/log_streams.hpp"
#include "client/follow/pod_output.hpp"
#include "client/inputs/own_files.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/safe_output.hpp"
#include "client/terminal/text.hpp"
#include "core/index_set.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

constexpr int64_t kFailedTail = 10;   // lines per failed index without --tail
constexpr size_t kUnreadListed = 10;  // logs that could not be printed

// The chosen attempt of each index.
using Chosen = std::map<int64_t, int64_t>;

bool write(std::string_view part) {
  raw_out().write(part.data(), static_cast<std::streamsize>(part.size())).flush();
  return static_cast<bool>(raw_out());
}

std::string stream_of(const LogsOptions& o) {
  return !o.err ? "All" : *o.err ? "Stderr" : "Stdout";
}

// `last`: print only this many last lines, of those that the coordinator sends. `answered` is unset
// if there is no answer at all.
Status print_log(ApiClient& client, const std::string& path, const std::string& lead,
                 std::optional<int64_t> last, bool& answered) {
  LastLines kept(last.value_or(0));
  auto response = last           ? client.stream(path, "*/*",
                                                 [&kept](std::string_view part) {
                                         kept.take(part);
                                         return true;
                                       })
                  : lead.empty() ? client.stream(path, "*/*", write)
                                 : client.lines(path, "*/*", [&](std::string_view line) {
                                     return write(lead + std::string(line) + '\n');
                                   });
  answered = response.ok();
  if (!response) return response.error();
  if (!response->ok()) return refusal(*response);
  if (!last) return Nothing{};
  const std::string text = kept.text();
  for (size_t at = 0; at < text.size();) {
    const size_t end = lead.empty() ? text.size() : std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!write(lead + line + (lead.empty() ? "" : "\n"))) break;
    at = end + 1;
  }
  return Nothing{};
}

// Where the pod's node knows no times of lines, the coordinator counts those of each output. What
// is followed has no last line yet.
std::optional<int64_t> last_of_both(const LogsOptions& o, std::optional<int64_t> tail) {
  return o.err || o.follow ? std::nullopt : tail;
}

// Prints files in place of a log. Those that cannot be read are reported, and the others printed.
int print_files(const OwnFiles& files, const std::vector<std::string>& paths,
                std::optional<int64_t> tail, const std::string& lead) {
  int code = kDone;
  for (const std::string& path : paths) {
    std::string rest;  // of a line that has not ended
    Status read = files.read(path, tail, [&](std::string_view part) {
      if (lead.empty()) return write(part);
      rest += part;
      for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
        if (!write(lead + rest.substr(0, end + 1))) return false;
      return true;
    });
    if (!rest.empty()) write(lead + rest + "\n");
    if (!read) code = fail(read.error());
  }
  return code;
}

// Whether it waits for a slot, so that it has printed nothing.
bool is_waiting(const Json& pod) {
  return text_at(pod, {"status", "phase"}) == "Pending" &&
         text_at(pod, {"spec", "nodeName"}).empty();
}

class JobLogs {
 public:
  JobLogs(const LogsOptions& options, ApiClient& client) : o_(options), client_(client) {}

  int run() {
    auto job = object(client_, object_path(Kind::job, o_.target.ns, o_.job));
    if (!job) return fail(with_near_miss(client_, o_.target.ns, Kind::job, o_.job, job.error()));
    if (!o_.tasks.empty()) {
      auto indexes = indexes_of_tasks(*job, o_.tasks);
      if (!indexes) return fail(indexes.error());
      o_.indexes = std::move(*indexes);
    }
    indexed_ = is_indexed(*job);
    if (!indexed_ && (o_.failed || !o_.indexes.empty()))
      return fail(Error{Errc::invalid,
                        "--index and --failed: job/" + o_.job +
                            " is NonIndexed; name a pod instead (muster get pods -l " +
                            "batch.kubernetes.io/job-name=" + o_.job + ")",
                        {}});
    if (Status there = indexes_exist(*job); !there) return fail(there.error());
    const OwnFiles files(*job);
    if (o_.follow && files.any())
      return fail(Error{
          Errc::invalid,
          "-f: the pods of job/" + o_.job +
              " write to files; follow them where they are: tail -f " +
              files.paths(o_.indexes.empty() ? 0 : index_set(o_.indexes).lowest(), 0, "").front(),
          {}});
    if (o_.follow && !o_.attempt) return followed(*job);
    if (!indexed_) return of_pods();
    auto chosen = o_.failed ? failed(*job) : newest();
    if (!chosen) return fail(chosen.error());
    if (chosen->empty()) return none();
    if (o_.follow && chosen->size() > 1)
      return fail(Error{Errc::invalid,
                        "--attempt: -f follows an attempt of one index, but there are " +
                            std::to_string(chosen->size()) + ": choose one with --index I",
                        {}});
    int code = kDone;
    const bool several = chosen->size() > 1;
    const bool led = o_.prefix.value_or(several || o_.failed);
    const auto tasks = led || several ? tasks_of(*job) : std::nullopt;
    leave_waiting(*chosen, tasks);
    for (auto [index, attempt] : *chosen) {
      const std::string path = own_path(o_.target.ns, o_.job, "log") +
                               "?index=" + std::to_string(index) +
                               "&attempt=" + std::to_string(attempt) + "&" + options();
      const std::string number = std::to_string(known_number(tasks, index));
      const std::string lead = led ? number + "#" + std::to_string(attempt) + " | " : "";
      const std::string title =
          (tasks ? "task " : "index ") + number + ", attempt " + std::to_string(attempt);
      if (int failed = print(path, lead, title, several); failed != kDone) return failed;
      if (!files.any()) continue;
      const auto node = files.on_node() ? node_of(index, attempt) : std::string();
      if (!node) return fail(node.error());
      if (int failed = print_files(files, files.paths(index, attempt, *node, o_.err), tail(), lead);
          failed != kDone)
        code = failed;
    }
    return told(code);
  }

 private:
  Status indexes_exist(const Json& job) const {
    const auto all = static_cast<uint64_t>(number_at(job, {"spec", "completions"}));
    const uint64_t strange = index_set(o_.indexes).lowest(all);
    if (all == 0 || o_.indexes.empty() || strange >= uint64_t{1} << 32) return Nothing{};
    std::string text = "job/" + o_.job + " has no index " + std::to_string(strange) + ": it has " +
                       std::to_string(all) + ", from 0";
    if (const auto tasks = Tasks::of(job); tasks && tasks->indexes(o_.indexes))
      text += "; tasks are chosen with --task " + o_.indexes;
    return Error{Errc::not_found, text, {}};
  }

  Result<std::string> node_of(int64_t index, int64_t attempt) {
    std::string node;
    Status read = each_attempt(client_, o_.target.ns, o_.job, "index=" + std::to_string(index),
                               [&](const Json& one) {
                                 if (number_at(one, {"attempt"}) == attempt)
                                   node = text_at(one, {"node"});
                               });
    if (!read) return read.error();
    auto pods = pods_of(client_, o_.target.ns, o_.job,
                        "batch.kubernetes.io/job-completion-index=" + std::to_string(index), "");
    if (!pods) return pods.error();
    for (const Json& pod : *pods)
      if (attempt_of(pod) == attempt) node = text_at(pod, {"spec", "nodeName"});
    return node;
  }

  std::optional<int64_t> tail() const {
    return o_.tail || !o_.failed ? o_.tail : std::optional(kFailedTail);
  }
  std::string options() const {
    return "stream=" + stream_of(o_) + (o_.follow ? "&follow=true" : "") +
           (tail() ? "&tailLines=" + std::to_string(*tail()) : std::string());
  }

  int none() const {
    if (o_.failed) {
      std::cerr << "no index of job/" << o_.job << " has failed\n";
      return kDone;
    }
    return fail(Error{Errc::not_found,
                      "job/" + o_.job +
                          (!o_.tasks.empty()     ? " task " + o_.tasks
                           : !o_.indexes.empty() ? " index " + o_.indexes
                                                 : "") +
                          (o_.attempt ? " attempt " + std::to_string(*o_.attempt) : "") +
                          " has no pod yet",
                      {}});
  }

  // Of several pods, those that have not started have nothing to print; if none has, that is an
  // error as it is for one.
  void leave_waiting(Chosen& chosen, const std::optional<Tasks>& tasks) {
    core::IndexSet left;
    for (const auto& [index, attempt] : waiting_)
      if (const auto at = chosen.find(index); at != chosen.end() && at->second == attempt)
        left.insert(static_cast<uint32_t>(index));
    if (left.empty() || left.size() == chosen.size()) return;
    for (const auto& [first, last] : left.intervals())
      chosen.erase(chosen.lower_bound(first), chosen.upper_bound(last));
    not_started_ = named_indexes(left, tasks);
  }

  int told(int code) const {
    if (!not_started_.empty()) std::cerr << "not started yet: " << not_started_ << "\n";
    return report_unread(unread_, code);
  }

  // The newest attempt of each chosen index, or the attempt given by --attempt.
  Result<Chosen> newest() {
    Chosen chosen;
    const core::IndexSet wanted = index_set(o_.indexes);
    if (o_.attempt && wanted.size() == 1)
      return Chosen{{static_cast<int64_t>(wanted.lowest()), *o_.attempt}};
    auto take = [&](int64_t index, int64_t attempt) {
      if ((o_.attempt && attempt != *o_.attempt)) return;
      if (!o_.indexes.empty() && !wanted.contains(static_cast<uint32_t>(index))) return;
      auto [at, fresh] = chosen.try_emplace(index, attempt);
      if (!fresh && at->second < attempt) at->second = attempt;
    };
    const std::string query = o_.indexes.empty() ? "" : "index=" + url_encoded(o_.indexes);
    Status read = each_attempt(client_, o_.target.ns, o_.job, query, [&](const Json& attempt) {
      take(number_at(attempt, {"index"}), number_at(attempt, {"attempt"}));
    });
    if (!read) return read.error();
    auto pods = pods_of(client_, o_.target.ns, o_.job,
                        wanted.size() == 1 ? "batch.kubernetes.io/job-completion-index=" +
                                                 std::to_string(wanted.lowest())
                                           : "",
                        "");
    if (!pods) return pods.error();
    for (const Json& pod : *pods) {
      const auto index = index_of(pod), attempt = attempt_of(pod);
      if (index && attempt) take(*index, *attempt);
      if (index && attempt && is_waiting(pod)) waiting_.emplace(*index, *attempt);
    }
    return chosen;
  }

  // The last failed attempt of each index that has failed for good; if there is none, of each index
  // that has failed and neither succeeded since nor was cancelled.
  Result<Chosen> failed(const Json& job) {
    const core::IndexSet for_good = failed_indexes(job), settled = settled_indexes(job);
    Chosen chosen;
    Status read =
        each_attempt(client_, o_.target.ns, o_.job, "failed=true", [&](const Json& attempt) {
          const auto index = static_cast<uint32_t>(number_at(attempt, {"index"}));
          if (for_good.empty() ? !settled.contains(index) : for_good.contains(index))
            chosen[index] = number_at(attempt, {"attempt"});
        });
    if (!read) return read.error();
    return chosen;
  }

  int of_pods() {
    auto pods = pods_of(client_, o_.target.ns, o_.job, "", "");
    if (!pods) return fail(pods.error());
    if (pods->empty()) return of_gone_pods();
    const auto waiting = static_cast<size_t>(std::ranges::count_if(*pods, is_waiting));
    if (waiting > 0 && waiting < pods->size())
      not_started_ = std::to_string(waiting) + (waiting == 1 ? " pod" : " pods");
    for (const Json& pod : *pods) {
      if (!not_started_.empty() && is_waiting(pod)) continue;
      const std::string name = text_at(pod, {"metadata", "name"});
      const std::string path = object_path(Kind::pod, o_.target.ns, name) + "/log?" + options();
      if (int code = print(path, o_.prefix.value_or(pods->size() > 1) ? name + " | " : "", name,
                           pods->size() > 1);
          code != kDone)
        return code;
    }
    return told(kDone);
  }

  // Of a NonIndexed job whose Pods are no longer kept, as after a failure with OnFailure.
  int of_gone_pods() {
    std::vector<Json> ended;
    Status read = each_attempt(client_, o_.target.ns, o_.job, "",
                               [&](const Json& attempt) { ended.push_back(attempt); });
    if (!read) return fail(read.error());
    if (ended.empty()) return none();
    for (const Json& one : ended) {
      const std::string path = own_path(o_.target.ns, o_.job, "log") +
                               "?index=" + std::to_string(number_at(one, {"number"})) +
                               "&attempt=" + std::to_string(number_at(one, {"attempt"})) + "&" +
                               options();
      const bool several = o_.prefix.value_or(ended.size() > 1);
      const std::string name = text_at(one, {"pod"});
      if (int code = print(path, several ? name + " | " : "", name, ended.size() > 1);
          code != kDone)
        return code;
    }
    return report_unread(unread_, kDone);
  }

  int followed(const Json& job) {
    const core::IndexSet wanted = index_set(o_.indexes);
    OutputWishes wishes;
    wishes.prefixed = o_.prefix.value_or(wanted.size() != 1 && has_several_pods(job));
    wishes.as_log = true;
    wishes.live_max = o_.live_max;
    wishes.err = o_.err;
    wishes.tail = o_.tail;
    if (!o_.indexes.empty()) wishes.only = wanted;
    Signals signals;
    const auto output = output_of_api(client_, o_.target.ns, job, std::move(wishes));
    FollowWishes follow_wishes;
    follow_wishes.output = output.get();
    follow_wishes.known = known_of(job);
    follow_wishes.quiet = true;
    if (!o_.indexes.empty())
      follow_wishes.enough = [&](const Json& now) {
        const core::IndexSet settled = settled_indexes(now);
        for (const auto& [first, last] : wanted.intervals())
          if (settled.lowest_missing(first) <= last) return false;
        return true;
      };
    const Follow end = follow(client_, signals, o_.target.ns, o_.job, follow_wishes);
    switch (end.how) {
      case Followed::complete:
      case Followed::failed:
        return report_unread(output->unread(), kDone);
      case Followed::gone:
        return fail(kNotFound, "job/" + o_.job + " was deleted");
      case Followed::interrupted:
      case Followed::timeout:
        return kInterrupted;
      case Followed::unreachable:
        break;
    }
    return fail(end.error);
  }

  // Of several logs, one that cannot be had is reported at the end.
  int print(const std::string& path, const std::string& lead, const std::string& title,
            bool several) {
    bool answered = false;
    Status read = print_log(client_, path, lead, last_of_both(o_, tail()), answered);
    if (read) return kDone;
    if (!several || !answered) return fail(read.error());
    unread_.emplace(title, read.error());
    return kDone;
  }

  LogsOptions o_;
  ApiClient& client_;
  bool indexed_ = false;
  std::set<std::pair<int64_t, int64_t>> waiting_;  // indexes and attempts that have no slot yet
  std::string not_started_;                        // what was left out for that
  std::map<std::string, Error> unread_;            // why a log could not be printed
};

// Text alone would not show that a coordinator answers, so the pod is asked for first.
int log_of_pod(const LogsOptions& o, ApiClient& client) {
  const auto pod = object(client, object_path(Kind::pod, o.target.ns, o.pod));
  if (!pod) return fail(with_near_miss(client, o.target.ns, Kind::pod, o.pod, pod.error()));
  std::string path = object_path(Kind::pod, o.target.ns, o.pod) + "/log?stream=" + stream_of(o);
  if (o.follow) path += "&follow=true";
  if (o.tail) path += "&tailLines=" + std::to_string(*o.tail);
  const std::string lead = o.prefix.value_or(false) ? o.pod + " | " : "";
  bool answered = false;
  if (Status read = print_log(client, path, lead, last_of_both(o, o.tail), answered); !read)
    return fail(read.error());
  const auto index = index_of(*pod), attempt = attempt_of(*pod);
  const std::string name = text_at(*pod, {"metadata", "labels", "batch.kubernetes.io/job-name"});
  if (!index || !attempt || name.empty()) return kDone;
  const auto job = object(client, object_path(Kind::job, o.target.ns, name));
  if (!job) return kDone;  // its pods outlive it
  const OwnFiles files(*job);
  return print_files(files,
                     files.paths(*index, *attempt, text_at(*pod, {"spec", "nodeName"}), o.err),
                     o.tail, lead);
}

struct LogsWords {
  LogsOptions o;
  std::string what;
  bool prefix = false, out = false, err = false;
};

std::optional<Usage> read_logged(const std::string& what, LogsOptions& o) {
  const bool some = !o.indexes.empty() || !o.tasks.empty();
  if (o.attempt && !some) return Usage{"--attempt requires --index or --task"};
  if (o.follow && o.failed) return Usage{"-f and --failed are mutually exclusive"};
  if (!o.selector.empty()) {
    if (!what.empty() || some || o.failed)
      return Usage{"-l selects from all pods: omit the name, --index, --task and --failed"};
    return std::nullopt;
  }
  if (what.empty()) return Usage{"needs POD, job/J or -l SELECTOR"};
  if (auto wrong = read_pod_or_job(what, o.pod, o.job)) return wrong;
  if (o.job.empty() && (some || o.failed))
    return Usage{
        "--index, --task and --failed apply to jobs only: muster logs job/J --index 3,7-9"};
  if (const auto set = typed_set(o.tasks); !set) return Usage{"--task: " + set.error().message};
  return read_set("--index", o.indexes);
}

}  // namespace

int report_unread(const std::map<std::string, Error>& unread, int code) {
  if (unread.empty()) return code;
  std::string text = "not printed:";
  size_t listed = 0;
  for (const auto& [title, why] : unread) {
    if (listed++ == kUnreadListed) break;
    text += "\n  " + title + ": " + why.message;
  }
  if (unread.size() > kUnreadListed)
    text += "\n  and " + std::to_string(unread.size() - kUnreadListed) + " more";
  return fail(exit_code(unread.begin()->second.code), text);
}

int execute(const LogsOptions& options) {
  const auto client = connect(options.target);
  if (!options.pod.empty()) return log_of_pod(options, *client);
  if (!options.selector.empty()) return selected_logs(options, *client);
  return JobLogs(options, *client).run();
}

Verb logs_verb() {
  auto w = std::make_shared<LogsWords>();
  LogsOptions& o = w->o;
  return {
      .title = {"Jobs", "logs", "Print the output of pods, running or finished"},
      .rows =
          {{"what", "POD | job/J", "Pod or job", &w->what},
           {"-l,--selector", "SELECTOR",
            "All pods with these labels, such as a=b,c!=d; without --tail, 10 lines of each",
            &o.selector},
           {"--index", "SET",
            "Indexes of the job, such as 3,7-9; with several, lines are prefixed with index and "
            "attempt",
            &o.indexes},
           {"--task", "SET", kTaskHelp, &o.tasks, kAnything, 0, {"--index"}},
           {"--failed",
            "",
            "Print the last lines of each failed index of the job",
            &o.failed,
            kAnything,
            0,
            {"--index", "--task"}},
           {"--attempt", "K", "Attempt of the index or task, from 0 (default: the latest)",
            &o.attempt, whole(0, kIndexMax)},
           {"--stdout", "", "Only standard output", &w->out},
           {"--stderr", "", "Only standard error", &w->err, kAnything, 0, {"--stdout"}},
           {"-f,--follow", "",
            "Print output as it arrives, until the pod, or the job with all its attempts, is over",
            &o.follow},
           {"--prefix", "",
            "Prefix each line with its pod; --prefix=false: never (default: with several)",
            &w->prefix},
           {"--max-log-requests", "N",
            "With -f, pods to follow at a time; others are printed when they end (default)",
            &o.live_max, whole(1, 1'000)},
           {"--tail", "N",
            "Last N lines of each pod; of one that runs and is followed as part of a job, N of "
            "each of "
            "stdout and stderr (default: all)",
            &o.tail, whole(0, kNumberMax)}},
      .asks = {&o.target},
      .footer =
          "Examples:\n  muster logs job/sweep --failed\n  muster logs job/sweep --index 3,7-9\n"
          "  muster logs job/sweep --index 7 --attempt 0 --tail 20\n"
          "  muster logs -f sweep-7-x2bqd\n  muster logs -f job/sweep\n"
          "  muster logs -f -l app=train --tail 1\n"
          "Standard output and error come as one text, in the order in which they were written, as "
          "far as the pod's node has seen it: lines of one that are less than 100 ms older or "
          "newer "
          "than lines of the other may change places with them.",
      .finish = [w](const Given& given) -> Judged {
        if (given.flags.contains("--prefix")) w->o.prefix = w->prefix;
        if (w->out || w->err) w->o.err = w->err;
        return judged(read_logged(w->what, w->o), w->o);
      }};
}

}  // namespace muster::cli
