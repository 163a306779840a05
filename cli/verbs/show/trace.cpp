// muster trace: the way of a pod, each step with its time. The pod may have ended long ago, and its
// job may be gone, as long as the coordinator has the attempt (`attempts` of a job, or of one in
// the history).
#include "cli/verbs/show/trace.hpp"

#include "base/printable.hpp"
#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/show/history.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/news/history.hpp"
#include "client/news/trace.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

// A job, whether or not it still exists.
struct TracedJob {
  std::string name;
  bool indexed = false;
  std::string attempts;  // path of its attempts, with a query
  std::string removed;   // "deleted 2026-12-01T17:00:00.000Z"; empty: it exists
  Json object;           // null: it does not exist
};

// Attempts of a job; of one index, unless none is named.
struct TracedAttempts {
  std::vector<Json> all;  // by attempt
  std::string job_created;
};

class Trace {
 public:
  Trace(const TraceOptions& options, ApiClient& client) : o_(options), client_(client) {}

  int run() {
    if (Status found = o_.pod.empty() ? find_index() : find_pod(); !found)
      return fail(found.error());
    if (is_structured(o_.output)) {
      std::cout << structured_text(as_json(), o_.output);
      return kDone;
    }
    print();
    return kDone;
  }

 private:
  Result<TracedAttempts> attempts_of(const TracedJob& job, const std::optional<int64_t>& index,
                                     const std::function<bool(const Json&)>& wanted) {
    TracedAttempts out;
    std::map<std::string, Json> by_uid;  // one that ends meanwhile may be listed twice
    const std::string path =
        job.attempts + (index ? "&index=" + std::to_string(*index) : std::string());
    Status read = each_item(
        client_, path,
        [&](const Json& attempt) {
          if (wanted(attempt)) by_uid.try_emplace(text_at(attempt, {"podUID"}), attempt);
        },
        [&out](const Json& metadata) { out.job_created = text_at(metadata, {"jobCreated"}); });
    if (!read) return read.error();
    for (auto& [uid, attempt] : by_uid) out.all.push_back(std::move(attempt));
    std::ranges::sort(out.all, {}, [](const Json& one) { return number_at(one, {"attempt"}); });
    return out;
  }

  // The jobs of this name, that which exists first, then those that are gone, newest first; none:
  // the error of the first.
  Result<std::vector<TracedJob>> jobs_of(const std::string& name) {
    std::vector<TracedJob> jobs;
    auto job = object(client_, object_path(Kind::job, o_.target.ns, name));
    if (job) {
      jobs.push_back({.name = name,
                      .indexed = is_indexed(*job),
                      .attempts = own_path(o_.target.ns, name, "attempts") +
                                  "?limit=1000&uncounted=true&open=true",
                      .object = *job});
    } else if (job.error().code != Errc::not_found) {
      return job.error();
    }
    const std::string history = history_path(o_.target.ns, "history");
    Status read = each_item(
        client_, history + "?limit=1000&name=" + url_encoded(name), [&](const Json& entry) {
          const std::string removed = text_at(entry, {"removed"});
          if (removed.empty() || text_at(entry, {"name"}) != name) return;
          const bool expired = text_at(entry, {"removal"}) == "Expired";
          jobs.insert(jobs.begin() + (job ? 1 : 0),
                      {.name = name,
                       .indexed = at(entry, {"indexed"}) == true,
                       .attempts = history + "/" + url_encoded(text_at(entry, {"id"})) +
                                   "/attempts?limit=1000",
                       .removed = (expired ? "expired " : "deleted ") + removed});
        });
    // not_found: the coordinator keeps no history.
    if (!read && read.error().code != Errc::not_found) return read.error();
    if (jobs.empty()) return job.error();
    return jobs;
  }

  Status find_index() {
    auto jobs = jobs_of(o_.job);
    if (!jobs) return with_near_miss(client_, o_.target.ns, Kind::job, o_.job, jobs.error());
    job_ = std::move(jobs->front());
    if (!job_.indexed)
      return invalid("job/" + o_.job +
                     " is NonIndexed, so its pods have no index: name a pod (muster get pods -l "
                     "batch.kubernetes.io/job-name=" +
                     o_.job + ")");
    int64_t index = o_.index.value_or(0);
    if (o_.task) {
      if (!job_.object.is_object())
        return invalid("--task: job/" + o_.job + " is gone, and its tasks with it: use --index");
      auto found = indexes_of_tasks(job_.object, std::to_string(*o_.task));
      if (!found) return found.error();
      index = static_cast<int64_t>(index_set(*found).lowest());
    }
    if (const int64_t all = number_at(job_.object, {"spec", "completions"});
        job_.object.is_object() && index >= all)
      return Error{Errc::not_found,
                   "job/" + o_.job + " has no index " + std::to_string(index) + ": it has " +
                       std::to_string(all) + ", from 0",
                   {}};
    auto found = attempts_of(job_, index, [](const Json&) { return true; });
    if (!found) return found.error();
    if (found->all.empty()) return none_of(index);
    take(std::move(*found), [](const Json&) { return false; });
    return Nothing{};
  }

  Error none_of(int64_t index) const {
    const std::string title = "index " + std::to_string(index) + " of job/" + o_.job;
    if (!job_.removed.empty())
      return {Errc::not_found,
              "no attempt of " + title + " is kept, which is " + job_.removed +
                  " (--attempts-keep and --attempts-max of the coordinator)",
              {}};
    return {Errc::not_found,
            title + " has no pod yet, or none that is kept: muster why job/" + o_.job + "/" +
                std::to_string(index),
            {}};
  }

  Status find_pod() {
    auto pod = object(client_, object_path(Kind::pod, o_.target.ns, o_.pod));
    if (!pod && pod.error().code != Errc::not_found) return pod.error();
    if (pod) {
      const std::string job = text_at(*pod, {"metadata", "labels", "batch.kubernetes.io/job-name"});
      if (!job.empty()) {
        auto found = find_in(job, index_of(*pod));
        if (!found) return found.error();
        if (*found) return Nothing{};
      }
    } else {
      // JOB-INDEX-xxxxx, or JOB-xxxxx of a NonIndexed job; long names of jobs are cut.
      const size_t last = o_.pod.rfind('-');
      const std::string front = last == std::string::npos ? "" : o_.pod.substr(0, last);
      const size_t dash = front.rfind('-');
      if (dash != std::string::npos && dash > 0) {
        if (const auto index = whole_number(front.substr(dash + 1))) {
          auto found = find_in(front.substr(0, dash), index);
          if (!found) return found.error();
          if (*found) return Nothing{};
        }
      }
      if (!front.empty()) {
        auto found = find_in(front, std::nullopt);
        if (!found) return found.error();
        if (*found) return Nothing{};
      }
    }
    if (!pod) return with_near_miss(client_, o_.target.ns, Kind::pod, o_.pod, pod.error());
    return Error{Errc::not_found, "the coordinator has no attempt of pod/" + o_.pod, {}};
  }

  // Whether a job of this name has had the pod. `index`: nullopt: it is NonIndexed.
  Result<bool> find_in(const std::string& name, const std::optional<int64_t>& index) {
    auto jobs = jobs_of(name);
    if (!jobs) {
      if (jobs.error().code == Errc::not_found) return false;
      return jobs.error();
    }
    const auto is_it = [this](const Json& one) { return text_at(one, {"pod"}) == o_.pod; };
    for (TracedJob& job : *jobs) {
      if (job.indexed != index.has_value()) continue;
      auto found = attempts_of(job, index, [&](const Json& one) { return index || is_it(one); });
      if (!found) {
        if (found.error().code == Errc::not_found) continue;  // forgotten since it was listed
        return found.error();
      }
      if (std::ranges::none_of(found->all, is_it)) continue;
      job_ = std::move(job);
      take(std::move(*found), is_it);
      return true;
    }
    return false;
  }

  // Traces the attempt that `is_it` chooses; none: the last.
  void take(TracedAttempts found, const std::function<bool(const Json&)>& is_it) {
    auto it = std::ranges::find_if(found.all, is_it);
    if (it == found.all.end()) --it;
    attempt_ = std::move(*it);
    found.all.erase(it);
    others_ = std::move(found.all);
    steps_ = trace_steps(attempt_, found.job_created);
  }

  Json as_json() const {
    return {{"kind", "Trace"},  {"apiVersion", "muster.dev/v1"}, {"namespace", o_.target.ns},
            {"job", job_.name}, {"attempt", attempt_},           {"steps", trace_json(steps_)},
            {"others", others_}};
  }

  std::string index_title() const {
    const int64_t index = number_at(attempt_, {"index"});
    const auto tasks = job_.object.is_object() ? tasks_of(job_.object) : std::nullopt;
    const auto task = tasks ? tasks->number(index) : std::nullopt;
    return task ? "task " + std::to_string(*task) : "index " + std::to_string(index);
  }

  void print() const {
    std::cout << "pod/" << text_at(attempt_, {"pod"});
    if (job_.indexed)
      std::cout << ": attempt " << number_at(attempt_, {"attempt"}) << " of " << index_title();
    std::cout << " of job/" << job_.name << (job_.removed.empty() ? "" : " (" + job_.removed + ")")
              << "\n"
              << aligned(trace_rows(steps_), "  ");
    if (std::ranges::any_of(steps_, &TraceStep::precedes))
      std::cout << "?: the times of a node are those of its reports, which may be late, so a step "
                   "may seem to precede the one before it.\n";
    if (text_at(attempt_, {"ended"}).empty())
      std::cout << "It has not ended: muster why job/" << job_.name
                << (job_.indexed ? "/" + std::to_string(number_at(attempt_, {"index"})) : "")
                << "\n";
    else if (text_at(attempt_, {"recorded"}).empty())
      std::cout << "It is counted when its replacement exists.\n";
    if (!others_.empty())
      std::cout << "Other attempts of " << index_title() << ":\n"
                << aligned(short_rows(others_), "  ");
    std::cout.flush();
  }

  const TraceOptions& o_;
  ApiClient& client_;
  TracedJob job_;
  Json attempt_;
  std::vector<Json> others_;  // of its index
  TraceSteps steps_;
};

}  // namespace

int execute(const TraceOptions& options) {
  const auto client = connect(options.target);
  return Trace(options, *client).run();
}

Verb trace_verb() {
  auto w = std::make_shared<Raw<TraceOptions>>();
  return {
      .title = {"Jobs", "trace", "Show each step of a pod's way and its time"},
      .rows = rows_of_index({"what", "POD|job/J/INDEX", "Pod, or the newest attempt of an index",
                             &w->what, kAnything, kRequired},
                            w->o.index, w->o.task),
      .asks = {&w->o.target},
      .footer =
          "Examples:\n  muster trace sweep-950-x7k2p\n  muster trace job/sweep/950\n"
          "Steps: the job was accepted; the pod was created, bound to a node, started and "
          "ended; its end was counted in the job's status. Also restarts in place, and an "
          "order to end it. Pods that have ended and jobs that are gone are found as long as "
          "the history has their attempts.",
      .finish = [w](const Given& given) -> Judged {
        const Output wanted = read_output(given.settings.text("output"));
        if (is_structured(wanted)) w->o.output = wanted;
        const char* flag = w->o.task ? "--task" : w->o.index ? "--index" : "";
        std::string word = w->what;
        const bool pod_first = word.starts_with("pod/") || word.starts_with("pods/");
        std::optional<int64_t> index;
        if (!pod_first)
          if (auto wrong = cut_index(word, flag, index)) return *wrong;
        if (index) {
          w->o.index = index;
          return judged(read_job_name(word, w->o.job), w->o);
        }
        if (auto wrong = read_pod_or_job(word, w->o.pod, w->o.job)) return *wrong;
        if (!w->o.pod.empty() && *flag != 0)
          return Usage{std::string(flag) + ": `" + w->what + "` is a pod; it is for job/J"};
        if (w->o.pod.empty() && *flag == 0)
          return Usage{"`" + w->what + "`: name an index: job/J/INDEX, --index I or --task N"};
        return w->o;
      }};
}

}  // namespace muster::cli
