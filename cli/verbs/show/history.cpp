// muster history: jobs of all time, those that are running and those that are gone, and their
// attempts.
#include "cli/verbs/show/history.hpp"

#include "base/clock.hpp"
#include "base/text/comma_list.hpp"
#include "base/text/time_text.hpp"
#include "cli/verbs/when.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/news/history.hpp"
#include "client/news/usage.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

constexpr uint32_t kPageMost = 1000;  // entries that the coordinator sends at a time

constexpr const char* kStates[] = {"pending", "held",      "suspended", "running", "complete",
                                   "failed",  "cancelled", "deleted",   "expired"};

std::optional<Usage> read_past(const std::string& flag, const std::string& text, Millis now,
                               std::optional<Millis>& into) {
  if (text.empty()) return std::nullopt;
  auto at = parse_past(text, now);
  if (!at.ok()) return Usage{flag + " " + at.error().message};
  into = *at;
  return std::nullopt;
}

std::string lower_letters(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

std::optional<Usage> check_states(const std::string& states) {
  const std::vector<std::string> known(std::begin(kStates), std::end(kStates));
  for (const std::string& word : split_at_commas(states))
    if (std::find(known.begin(), known.end(), lower_letters(word)) == known.end())
      return Usage{"--state " + word + ": must be " + listed(known, " or ")};
  return std::nullopt;
}

void print_list(const char* kind, Output output, Json items) {
  std::cout << structured_text(
      {{"kind", kind}, {"apiVersion", "muster.dev/v1"}, {"items", std::move(items)}}, output);
}

void print_entries(const HistoryOptions& o, std::vector<Json> entries, Millis now) {
  if (is_structured(o.output)) {
    Json items = Json::array();
    for (Json& entry : entries) items.push_back(std::move(entry));
    return print_list("HistoryEntryList", o.output, std::move(items));
  }
  if (o.output == Output::tsv) {
    if (o.headers) std::cout << history_tsv_header();
    for (const Json& entry : entries) std::cout << history_tsv_line(entry, now);
    return;
  }
  const bool wide = o.output == Output::wide;
  std::vector<std::vector<std::string>> rows;
  if (o.headers && o.output != Output::name) rows.push_back(history_header(wide, o.all_namespaces));
  for (const Json& entry : entries)
    rows.push_back(o.output == Output::name
                       ? std::vector<std::string>{"job.batch/" + text_at(entry, {"name"})}
                       : history_cells(entry, now, wide, o.all_namespaces));
  std::cout << aligned(rows, "");
}

std::string attempts_path(const Json& entry) {
  return history_path(text_at(entry, {"namespace"}), "history") + "/" +
         url_encoded(text_at(entry, {"id"})) + "/attempts?limit=1000";
}

// The tasks of the entry's job, if it is an array. Entries with many ranges, or of earlier
// versions, have none: then those of the job, if it still exists.
std::optional<Tasks> tasks_of_entry(ApiClient& client, const Json& entry) {
  if (const std::string ranges = text_at(entry, {"tasks"}); !ranges.empty()) {
    auto tasks = Tasks::of_ranges(ranges);
    return tasks ? std::optional(std::move(*tasks)) : std::nullopt;
  }
  if (!text_at(entry, {"removal"}).empty()) return std::nullopt;
  const auto job = object(
      client, object_path(Kind::job, text_at(entry, {"namespace"}), text_at(entry, {"name"})));
  if (!job || text_at(*job, {"metadata", "uid"}) != text_at(entry, {"uid"})) return std::nullopt;
  return tasks_of(*job);
}

std::optional<int64_t> task_of(const Json& attempt, const std::optional<Tasks>& tasks) {
  return tasks ? tasks->number(number_at(attempt, {"index"}, -1)) : std::nullopt;
}

// Without its task.
std::vector<std::string> attempt_cells(const Json& entry, const Json& attempt) {
  const auto ran = elapsed_seconds(attempt, 0);
  auto number = [&attempt](const char* field) {
    return attempt.contains(field) ? attempt[field].dump() : std::string("-");
  };
  const Json& requests = at(entry, {"requests"});
  const Requested requested{static_cast<double>(number_at(requests, {"cpuMillis"})) / 1000,
                            static_cast<double>(number_at(requests, {"memoryBytes"}))};
  return {text_at(entry, {"name"}),
          number("index"),
          number("attempt"),
          text_at(attempt, {"node"}),
          or_dash(instant_at(attempt, "started")),
          or_dash(instant_at(attempt, "ended")),
          ran ? precise_span(*ran) : "-",
          cpu_text(at(attempt, {"usage"}), ran.value_or(0), requested),
          memory_text(at(attempt, {"usage"}), requested),
          attempt_counted(attempt),
          attempt_cause(attempt)};
}

std::string attempt_line(const Json& entry, const Json& attempt, std::optional<int64_t> task) {
  auto number = [&attempt](std::initializer_list<const char*> keys) {
    const Json& value = at(attempt, keys);
    return value.is_number() ? value.dump() : "";
  };
  std::string line;
  for (const std::string& cell :
       {text_at(entry, {"id"}), text_at(entry, {"namespace"}), text_at(entry, {"name"}),
        number({"index"}), number({"attempt"}), text_at(attempt, {"pod"}),
        text_at(attempt, {"node"}), instant_at(attempt, "started"), instant_at(attempt, "ended"),
        number({"exitCode"}), number({"signal"}), text_at(attempt, {"counted"}),
        text_at(attempt, {"cause"}), number({"usage", "userSeconds"}),
        number({"usage", "systemSeconds"}), number({"usage", "peakMemoryBytes"}),
        task ? std::to_string(*task) : ""})
    line += (line.empty() ? "" : "\t") + tsv_cell(cell);
  return line + "\n";
}

constexpr const char* kAttemptHeader =
    "Id\tNamespace\tName\tIndex\tAttempt\tPod\tNode\tStarted\tEnded\tExitcode\tSignal\tCounted\t"
    "Cause\tUsertime\tSystemtime\tPeakmemory\tTask\n";

// The attempts of several jobs, with a column for tasks if one of these is an array.
class AttemptRows {
 public:
  explicit AttemptRows(bool namespaces) : namespaces_(namespaces) {}

  void add(const Json& entry, const Json& attempt, std::optional<int64_t> task) {
    any_task_ |= task.has_value();
    rows_.push_back({text_at(entry, {"namespace"}), task ? std::to_string(*task) : "-",
                     attempt_cells(entry, attempt)});
  }

  std::string text(bool headers) && {
    if (headers)
      rows_.insert(rows_.begin(), {"NAMESPACE",
                                   "TASK",
                                   {"NAME", "INDEX", "ATTEMPT", "NODE", "STARTED", "ENDED", "RAN",
                                    "CPU", "MEMORY", "COUNTED AS", "CAUSE"}});
    std::vector<std::vector<std::string>> cells;
    for (auto& [ns, task, row] : rows_) {
      if (any_task_) row.insert(row.begin() + 2, std::move(task));
      if (namespaces_) row.insert(row.begin(), std::move(ns));
      cells.push_back(std::move(row));
    }
    return aligned(cells, "");
  }

 private:
  struct Row {
    std::string ns, task;
    std::vector<std::string> cells;
  };
  const bool namespaces_;
  bool any_task_ = false;
  std::vector<Row> rows_;
};

// TSV is printed as it comes; the other forms need all of it.
int print_attempts(ApiClient& client, const HistoryOptions& o, const std::vector<Json>& entries) {
  Json items = Json::array();
  AttemptRows rows(o.all_namespaces);
  if (o.headers && o.output == Output::tsv) std::cout << kAttemptHeader;
  for (const Json& entry : entries) {
    const auto tasks = tasks_of_entry(client, entry);
    Status read = each_item(client, attempts_path(entry), [&](const Json& attempt) {
      const auto task = task_of(attempt, tasks);
      if (is_structured(o.output)) {
        Json& item = items.emplace_back(attempt);
        item["job"] = {{"id", text_at(entry, {"id"})},
                       {"namespace", text_at(entry, {"namespace"})},
                       {"name", text_at(entry, {"name"})},
                       {"uid", text_at(entry, {"uid"})}};
        if (task) item["task"] = *task;
      } else if (o.output == Output::tsv) {
        std::cout << attempt_line(entry, attempt, task);
      } else {
        rows.add(entry, attempt, task);
      }
    });
    // Forgotten since it was listed.
    if (!read && read.error().code != Errc::not_found) return fail(read.error());
  }
  if (is_structured(o.output))
    print_list("AttemptList", o.output, std::move(items));
  else if (o.output != Output::tsv)
    std::cout << std::move(rows).text(o.headers);
  return kDone;
}

}  // namespace

std::string choice_query(const HistoryChoice& choice) {
  std::string query;
  auto put = [&query](const char* name, const std::string& value) {
    if (!value.empty()) query += std::string("&") + name + "=" + url_encoded(value);
  };
  std::string names;
  for (const std::string& name : choice.names) names += (names.empty() ? "" : ",") + name;
  put("name", names);
  put("user", choice.users);
  put("queue", choice.queues);
  put("state", choice.states);
  return query;
}

FlagRows history_rows(HistoryWords& words) {
  return {
      {"--user", "USER[,USER]", "Jobs of these users, by name or uid", &words.user},
      {"--queue", "Q[,Q]", "Jobs of these queues", &words.queue},
      {"--name", "PATTERN", "Jobs whose name matches, such as 'sweep-*'; repeatable", &words.names},
      {"--state", "STATE[,STATE]",
       "Jobs in these states: " +
           listed(std::vector<std::string>(std::begin(kStates), std::end(kStates)), " or "),
       &words.state}};
}

FlagRow form_row(const std::vector<std::string>& forms) {
  const Key& form = *find_key(Section::client, "output");
  FlagRow row = key_row(form, "-o,--output");
  row.help = "Output format (default " + std::string(form.fallback) + "): " + listed(forms, " or ");
  return row;
}

std::optional<Usage> read_choice(const Given& given, const HistoryWords& words, Millis now,
                                 HistoryChoice& choice) {
  if (auto wrong = check_filled(given, {{"--user", {words.user}},
                                        {"--queue", {words.queue}},
                                        {"--name", words.names},
                                        {"--state", {words.state}},
                                        {"--since", {words.since}},
                                        {"--until", {words.until}}}))
    return wrong;
  if (auto wrong = check_states(words.state)) return wrong;
  choice.users = words.user;
  choice.queues = words.queue;
  choice.states = words.state;
  choice.names.insert(choice.names.end(), words.names.begin(), words.names.end());
  if (auto wrong = read_past("--since", words.since, now, choice.since)) return wrong;
  if (auto wrong = read_past("--until", words.until, now, choice.until)) return wrong;
  if (choice.since && choice.until && *choice.until <= *choice.since)
    return Usage{"--until " + words.until + ": must be after --since " + words.since};
  return std::nullopt;
}

int execute(const HistoryOptions& options) {
  const auto client = connect(options.target);
  const Millis now = wall_now();
  const HistoryChoice& choice = options.choice;
  // The coordinator need not send what is not shown.
  const bool newest = options.sort == "created" && options.limit > 0 && options.limit <= kPageMost;
  std::string path = history_path(options.all_namespaces ? "" : options.target.ns, "history") +
                     (newest ? "?newest=" + std::to_string(options.limit)
                             : "?limit=" + std::to_string(kPageMost)) +
                     choice_query(choice);
  if (choice.since) path += "&since=" + url_encoded(time_text(*choice.since));
  if (choice.until) path += "&until=" + url_encoded(time_text(*choice.until));
  LastEntries last(options.sort, options.reverse, options.limit, now);
  Status read = each_item(
      *client, path, [&last](const Json& entry) { last.add(entry); },
      [&last](const Json& metadata) {
        last.add_unseen(static_cast<size_t>(number_at(metadata, {"skipped"})));
      });
  if (!read) return fail(read.error());
  const size_t seen = last.seen();
  std::vector<Json> entries = last.take();
  if (entries.size() < seen)
    std::cerr << "showing the last " << entries.size() << " of " << seen << " jobs by "
              << options.sort << "; --limit 0 shows all\n";
  if (entries.empty() && !is_structured(options.output) && options.output != Output::tsv) {
    std::cerr << "No jobs found in the history"
              << (options.all_namespaces ? "" : " of namespace " + options.target.ns) << ".\n";
    return kDone;
  }
  if (options.attempts) return print_attempts(*client, options, entries);
  print_entries(options, std::move(entries), now);
  return kDone;
}

Verb history_verb() {
  struct Words : HistoryWords {
    HistoryOptions o;
    std::vector<std::string> jobs;
    bool no_headers = false;
  };
  auto w = std::make_shared<Words>();
  FlagRows rows = {{"jobs", "[job/J...]",
                    "Only jobs of these names, of which there may be several each", &w->jobs}};
  for (FlagRow& row : history_rows(*w)) rows.push_back(std::move(row));
  for (FlagRow& row : FlagRows{
           {"--since", "WHEN",
            "Jobs that had not ended by then: 2026-12-01, 18:00, yesterday, or 7d for seven days "
            "ago",
            &w->since},
           {"--until", "WHEN", "Jobs that were created before", &w->until},
           {"--sort", "WORD",
            "Sort by this, ascending (default): " + listed(history_sort_words(), " or "),
            &w->o.sort, one_of(history_sort_words())},
           {"--reverse", "", "Sort in descending order", &w->o.reverse},
           {"--limit", "N", "Show only the N that are highest in this order; 0: all (default)",
            &w->o.limit, whole(0, kNumberMax)},
           {"--attempts", "",
            "Show the attempts of these jobs, with the task of each if its job is an array",
            &w->o.attempts},
           {"-A,--all-namespaces", "", "Jobs of all namespaces", &w->o.all_namespaces},
           form_row({"table", "wide", "name", "json", "yaml", "tsv"}),
           {"--no-headers", "", "Omit the header line", &w->no_headers}})
    rows.push_back(std::move(row));
  return {
      .title = {"Jobs", "history", "List jobs of all time, also deleted and expired ones"},
      .rows = std::move(rows),
      .asks = {&w->o.target},
      .footer =
          "Examples:\n  muster history --since 7d\n"
          "  muster history --user alice --state failed -o wide\n"
          "  muster history job/sweep --attempts\n"
          "  muster history -A --since 2026-12 --sort cpu --reverse --limit 20\n"
          "  muster history -A --limit 0 -o tsv > jobs.tsv\n"
          "ELAPSED is from the first start to the end. CPU is what all attempts used that have "
          "ended, and the share of what they held: their run times, multiplied by the CPUs that a "
          "pod requests, or 1. MEMORY is the peak of the largest attempt. deleted is the state of "
          "jobs that were deleted before they had ended; expired finds those that their TTL "
          "removed. Users see their own jobs.",
      .finish = [w](const Given& given) -> Judged {
        HistoryOptions& o = w->o;
        if (!w->jobs.empty())
          if (auto wrong = read_job_names(w->jobs, o.choice.names)) return *wrong;
        if (auto wrong = read_choice(given, *w, wall_now(), o.choice)) return *wrong;
        o.output = read_output(given.settings.text("output"));
        o.headers = !w->no_headers;
        return o;
      }};
}

}  // namespace muster::cli
