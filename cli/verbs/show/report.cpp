// muster report: what jobs have used, by user, group, queue and period.
#include "base/clock.hpp"
#include "base/text/comma_list.hpp"
#include "base/text/time_text.hpp"
#include "cli/verbs/show/history.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/news/history.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

constexpr size_t kPeriodsMax = 1000;
constexpr Millis kClocksApartMs =
    3'600'000;  // those of the coordinator and of this machine, at most

const std::vector<std::string>& column_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = {"user", "group", "queue", "namespace", "name", "state"};
    all.insert(all.end(), period_words().begin(), period_words().end());
    return all;
  }();
  return words;
}

bool is_period(const std::string& word) {
  return std::ranges::find(period_words(), word) != period_words().end();
}

std::optional<Usage> read_columns(const std::string& by, ReportOptions& o) {
  for (const std::string& word : split_at_commas(by)) {
    if (std::ranges::find(column_words(), word) == column_words().end())
      return Usage{"--by " + word + ": must be " + listed(column_words(), " or ")};
    if (is_period(word) && !o.period.empty() && o.period != word)
      return Usage{"--by " + by + ": choose " + o.period + " or " + word + ", not both"};
    if (is_period(word)) o.period = word;
    const std::string column = is_period(word) ? "span" : word;
    if (std::ranges::find(o.columns, column) == o.columns.end()) o.columns.push_back(column);
  }
  return std::nullopt;
}

// Without --since, a report is of this month so far; by months or years, of this year.
std::optional<Usage> read_periods(Millis now, ReportOptions& o) {
  const bool long_ones = o.period == "month" || o.period == "year";
  const Millis since = o.choice.since.value_or(period_begin(long_ones ? "year" : "month", now));
  // Jobs that have not ended count now: a report that is open at its end includes them.
  const Millis until = o.choice.until.value_or(now + kClocksApartMs);
  if (o.period.empty()) {
    o.periods = {{since, until}, {""}};
    return std::nullopt;
  }
  auto periods = periods_of(o.period, since, until, kPeriodsMax);
  if (!periods)
    return Usage{"--by " + o.period + ": more than " + std::to_string(kPeriodsMax) +
                 " of them; choose a shorter span with --since and --until"};
  o.periods = std::move(*periods);
  return std::nullopt;
}

std::string report_path(const ReportOptions& o) {
  std::string by, bounds;
  for (const std::string& column : o.columns) by += (by.empty() ? "" : ",") + column;
  for (const Millis at : o.periods.bounds) bounds += (bounds.empty() ? "" : ",") + time_text(at);
  return history_path(o.all_namespaces ? "" : o.target.ns, "report") + "?by=" + url_encoded(by) +
         "&bounds=" + url_encoded(bounds) + choice_query(o.choice);
}

}  // namespace

int execute(const ReportOptions& options) {
  const auto client = connect(options.target);
  UsageTable table(options.columns, options.periods, options.period);
  Status read =
      each_item(*client, report_path(options), [&table](const Json& item) { table.add(item); });
  if (!read) return fail(read.error());
  if (is_structured(options.output))
    std::cout << structured_text(table.json(), options.output);
  else if (options.output == Output::tsv)
    std::cout << table.tsv(options.headers);
  else if (table.empty())
    std::cerr << "No jobs ended in that time, and none is there now.\n";
  else
    std::cout << aligned(table.cells(options.headers), "");
  return kDone;
}

Verb report_verb() {
  struct Words : HistoryWords {
    ReportOptions o;
    std::string by = "user";
    bool here = false, no_headers = false;
  };
  auto w = std::make_shared<Words>();
  FlagRows rows = {{"--by", "WORD[,WORD]",
                    "A line for each: " + listed(column_words(), " or ") + " (default)", &w->by}};
  for (FlagRow& row : history_rows(*w)) rows.push_back(std::move(row));
  FlagRow form = form_row({"table", "json", "yaml", "tsv"});
  form.help += " (wide and name, which a configuration may say, are table here)";
  for (FlagRow& row : FlagRows{
           {"--since", "WHEN",
            "Jobs that ended from then on: 2026-12, 2026-12-01, yesterday, or 7d for seven days "
            "ago (default: the beginning of this month, by month and year of this year)",
            &w->since},
           {"--until", "WHEN",
            "Jobs that ended before (default: now, with those that have not ended)", &w->until},
           {"--this-namespace", "", "Only jobs of the namespace (default: of all)", &w->here},
           form,
           {"--no-headers", "", "Omit the header line", &w->no_headers}})
    rows.push_back(std::move(row));
  return {
      .title = {"Jobs", "report", "Sum up what jobs have used, by user, group, queue and month"},
      .rows = std::move(rows),
      .asks = {&w->o.target},
      .footer =
          "Examples:\n  muster report\n  muster report --by user,month\n"
          "  muster report --by queue --since 2026-11 --until 2026-12\n"
          "  muster report --by group,queue --since 30d -o tsv\n"
          "A job counts with all that it used when it ended, so periods add up; what has not "
          "ended counts now, with the attempts that have. CPU HELD is the run time of all "
          "attempts, multiplied by the CPUs that a pod requests, or 1; EFFICIENCY is what of it "
          "was used. WAITED is the average time from when a job was free to run until its first "
          "start. Users get a report of their own jobs, operators of everyone's.",
      .finish = [w](const Given& given) -> Judged {
        ReportOptions& o = w->o;
        const Millis now = wall_now();
        if (auto wrong = check_filled(given, {{"--by", {w->by}}})) return *wrong;
        if (auto wrong = read_columns(w->by, o)) return *wrong;
        if (auto wrong = read_choice(given, *w, now, o.choice)) return *wrong;
        if (auto wrong = read_periods(now, o)) return *wrong;
        o.all_namespaces = !w->here;
        o.output = read_output(given.settings.text("output"));
        o.headers = !w->no_headers;
        return o;
      }};
}

}  // namespace muster::cli
