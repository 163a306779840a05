// muster get attempts: one line per closed attempt, newest last, after those of its runs that were
// restarted in place.
#include "client/news/attempts.hpp"

#include "base/text/time_text.hpp"
#include "cli/verbs/show/get.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/joblog.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/usage.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/quantity.hpp"

#include <iostream>
#include <optional>

namespace muster::cli {
namespace {

std::string index_text(const Json& attempt) {
  return attempt.contains("index") ? attempt["index"].dump() : std::string("-");
}

// How long it ran, in seconds; nullopt if it never started.
std::optional<double> ran_seconds(const Json& attempt) {
  const auto from = parse_time(text_at(attempt, {"started"}));
  const auto to = parse_time(text_at(attempt, {"ended"}));
  if (!from || !to || *to < *from) return std::nullopt;
  return static_cast<double>(*to - *from) / 1000;
}

// "2.100s"; "-" if it never started.
std::string ran(const Json& attempt) {
  const auto seconds = ran_seconds(attempt);
  return seconds ? precise_span(*seconds) : "-";
}

// "8Gi, 2h": the limits that the attempt had.
std::string limits_text(const Json& attempt) {
  std::string text = text_at(attempt, {"memory"});
  if (const int64_t time_s = number_at(attempt, {"timeLimitSeconds"}); time_s > 0)
    text += (text.empty() ? "" : ", ") + core::duration_text(time_s * 1000);
  return text.empty() ? "-" : text;
}

// What a pod of the job requests, with the memory that the attempt had.
Requested requested_in(const Json& attempt, Requested requested) {
  const auto milli = core::parse_quantity_milli(text_at(attempt, {"memory"}));
  if (milli) requested.memory_bytes = static_cast<double>(*milli) / 1000;
  return requested;
}

// A row for each run of the attempt before its end, oldest first.
void add_runs(const Json& attempt, const Requested& requested,
              std::vector<std::vector<std::string>>& rows) {
  const Json& runs = at(attempt, {"runs"});
  for (const Json& run : runs.is_array() ? runs : Json::array()) {
    const std::string started = text_at(run, {"started"});
    rows.push_back({index_text(attempt), std::to_string(number_at(attempt, {"attempt"})),
                    text_at(attempt, {"node"}), started.empty() ? "-" : started, ran(run),
                    cpu_text(at(run, {"usage"}), ran_seconds(run).value_or(0), requested),
                    memory_text(at(run, {"usage"}), requested), "restarted", run_cause(run)});
  }
}

}  // namespace

int execute(const AttemptsOptions& options) {
  const auto client = connect(options.target);
  const auto job = object(*client, object_path(Kind::job, options.target.ns, options.job));
  std::string query = "uncounted=true", index = options.index;
  if (options.failed) query += "&failed=true";
  if (!options.task.empty()) {
    if (!job) return fail(job.error());
    auto indexes = indexes_of_tasks(*job, options.task);
    if (!indexes) return fail(indexes.error());
    index = std::move(*indexes);
  }
  if (!index.empty()) query += "&index=" + url_encoded(index);
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows;
  if (options.headers)
    rows.push_back(
        {"INDEX", "ATTEMPT", "NODE", "STARTED", "RAN", "CPU", "MEMORY", "COUNTED AS", "CAUSE"});
  if (options.output == Output::tsv) {
    Joblog log(job ? *job : Json());
    if (options.headers) std::cout << joblog_header();
    Status read = each_attempt(*client, options.target.ns, options.job, query,
                               [&log](const Json& attempt) { std::cout << log.line(attempt); });
    return read ? kDone : fail(read.error());
  }
  const JobInputs inputs(job ? *job : Json());
  const Requested of_template = requested_by(job ? *job : Json());
  const Json notes = job ? at(*job, {"metadata", "annotations"}) : Json();
  const bool raises = notes.contains(core::kRetryMemoryKey) || notes.contains(core::kRetryTimeKey);
  if (raises && options.headers) rows.front().insert(rows.front().end() - 2, "LIMITS");
  const auto tasks = tasks_of(job ? *job : Json());
  if (inputs.any() && options.headers)
    rows.front().insert(rows.front().begin() + 1, tasks ? "TASK" : "INPUT");
  Status done =
      each_attempt(*client, options.target.ns, options.job, query, [&](const Json& attempt) {
        if (options.output == Output::json || options.output == Output::yaml) {
          all.push_back(attempt);
          if (auto input = inputs.of(number_at(attempt, {"index"}, -1)))
            all.back()["input"] = std::move(*input);
          if (const auto task =
                  tasks ? tasks->number(number_at(attempt, {"index"}, -1)) : std::nullopt)
            all.back()["task"] = *task;
        } else if (options.output == Output::name) {
          rows.push_back({text_at(attempt, {"pod"})});
        } else {
          const std::string started = text_at(attempt, {"started"});
          const size_t first = rows.size();
          const Requested requested = raises ? requested_in(attempt, of_template) : of_template;
          add_runs(attempt, requested, rows);
          rows.push_back(
              {index_text(attempt), std::to_string(number_at(attempt, {"attempt"})),
               text_at(attempt, {"node"}), started.empty() ? "-" : started, ran(attempt),
               cpu_text(at(attempt, {"usage"}), ran_seconds(attempt).value_or(0), requested),
               memory_text(at(attempt, {"usage"}), requested), attempt_counted(attempt),
               attempt_cause(attempt)});
          for (size_t i = first; i < rows.size() && raises; ++i)
            rows[i].insert(rows[i].end() - 2, limits_text(attempt));
          for (size_t i = first; i < rows.size() && inputs.any(); ++i)
            rows[i].insert(
                rows[i].begin() + 1,
                cut(inputs.of(number_at(attempt, {"index"}, -1)).value_or("-"), kInputShown));
        }
      });
  if (!done) return fail(done.error());
  if (is_structured(options.output)) {
    const Json list = {{"kind", "AttemptList"}, {"apiVersion", "muster.dev/v1"}, {"items", all}};
    std::cout << structured_text(list, options.output);
    return kDone;
  }
  if (options.output == Output::name) {
    for (size_t i = options.headers ? 1 : 0; i < rows.size(); ++i)
      std::cout << rows[i].front() << "\n";
    return kDone;
  }
  if (rows.size() <= (options.headers ? 1u : 0u))
    std::cerr << "no attempt of job/" << options.job << " has ended yet\n";
  else
    std::cout << aligned(rows, "");
  return kDone;
}

}  // namespace muster::cli
