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

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

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

std::string or_none(std::string text) {
  return text.empty() ? "-" : std::move(text);
}

// The table, in which each run of an attempt before its end has a row of its own, oldest first.
class AttemptTable {
 public:
  AttemptTable(const Json& job, bool wide)
      : inputs_(job), tasks_(tasks_of(job)), requested_(requested_by(job)), wide_(wide) {
    const Json& notes = at(job, {"metadata", "annotations"});
    raises_ = notes.contains(core::kRetryMemoryKey) || notes.contains(core::kRetryTimeKey);
  }

  std::vector<std::string> header() const {
    return row(
        {"INDEX", "ATTEMPT", "NODE", "STARTED", "RAN", "CPU", "MEMORY", "COUNTED AS", "CAUSE"},
        tasks_ ? "TASK" : "INPUT", {"WAITED", "ENDED", "USER", "SYSTEM"}, "LIMITS");
  }

  void add(const Json& attempt, std::vector<std::vector<std::string>>& rows) const {
    const int64_t index = number_at(attempt, {"index"}, -1);
    const std::string input = cut(inputs_.of(index).value_or("-"), kInputShown);
    const std::string limits = raises_ ? limits_text(attempt) : "";
    const Json& runs = at(attempt, {"runs"});
    for (const Json& run : runs.is_array() ? runs : Json::array())
      rows.push_back(
          row(cells(attempt, run, "restarted", run_cause(run)), input, ends(run, "-"), limits));
    rows.push_back(row(cells(attempt, attempt, attempt_counted(attempt), attempt_cause(attempt)),
                       input, ends(attempt, waited(attempt)), limits));
  }

 private:
  using Cells = std::vector<std::string>;

  // `run`: of the attempt, or itself.
  Cells cells(const Json& attempt, const Json& run, std::string counted, std::string cause) const {
    const Requested requested = raises_ ? requested_in(attempt, requested_) : requested_;
    return {index_text(attempt),
            std::to_string(number_at(attempt, {"attempt"})),
            text_at(attempt, {"node"}),
            or_none(text_at(run, {"started"})),
            ran(run),
            cpu_text(at(run, {"usage"}), ran_seconds(run).value_or(0), requested),
            memory_text(at(run, {"usage"}), requested),
            std::move(counted),
            std::move(cause)};
  }

  static Cells ends(const Json& run, std::string waited) {
    const Json& usage = at(run, {"usage"});
    return {std::move(waited), or_none(text_at(run, {"ended"})),
            cpu_mode_text(usage, "userSeconds"), cpu_mode_text(usage, "systemSeconds")};
  }

  // With the columns that only some tables have.
  Cells row(Cells cells, const std::string& input, const Cells& more,
            const std::string& limits) const {
    if (wide_) cells.insert(cells.end() - 2, more.begin(), more.end());
    if (raises_) cells.insert(cells.end() - 2, limits);
    if (inputs_.any()) cells.insert(cells.begin() + 1, input);
    return cells;
  }

  const JobInputs inputs_;
  const std::optional<Tasks> tasks_;
  const Requested requested_;
  const bool wide_;
  bool raises_ = false;  // limits, from attempt to attempt
};

// The attempt with what the job's inputs say of its index.
Json with_input(const Json& attempt, const JobInputs& inputs, const std::optional<Tasks>& tasks) {
  Json out = attempt;
  const int64_t index = number_at(attempt, {"index"}, -1);
  if (auto input = inputs.of(index)) out["input"] = std::move(*input);
  if (const auto task = tasks ? tasks->number(index) : std::nullopt) out["task"] = *task;
  return out;
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
  const Json of = job ? *job : Json();
  const auto each = [&](const std::function<void(const Json&)>& take) {
    return each_attempt(*client, options.target.ns, options.job, query, take);
  };
  if (options.output == Output::tsv) {
    Joblog log(of);
    if (options.headers) std::cout << joblog_header();
    Status read = each([&log](const Json& attempt) { std::cout << log.line(attempt); });
    return read ? kDone : fail(read.error());
  }
  if (is_structured(options.output)) {
    const JobInputs inputs(of);
    const auto tasks = tasks_of(of);
    Json all = Json::array();
    Status read =
        each([&](const Json& attempt) { all.push_back(with_input(attempt, inputs, tasks)); });
    if (!read) return fail(read.error());
    const Json list = {{"kind", "AttemptList"}, {"apiVersion", "muster.dev/v1"}, {"items", all}};
    std::cout << structured_text(list, options.output);
    return kDone;
  }
  if (options.output == Output::name) {
    std::vector<std::string> names;
    Status read = each([&](const Json& attempt) { names.push_back(text_at(attempt, {"pod"})); });
    if (!read) return fail(read.error());
    for (const std::string& name : names) std::cout << name << "\n";
    return kDone;
  }
  const AttemptTable table(of, options.output == Output::wide);
  std::vector<std::vector<std::string>> rows;
  if (options.headers) rows.push_back(table.header());
  Status read = each([&](const Json& attempt) { table.add(attempt, rows); });
  if (!read) return fail(read.error());
  if (rows.size() <= (options.headers ? 1u : 0u))
    std::cerr << "no attempt of job/" << options.job << " has ended yet\n";
  else
    std::cout << aligned(rows, "");
  return kDone;
}

}  // namespace muster::cli
