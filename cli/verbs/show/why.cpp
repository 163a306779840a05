// muster why: what a job or one of its indexes is waiting for, or why it ended.
#include "cli/verbs/show/why.hpp"

#include "base/printable.hpp"
#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/follow.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/news/failures.hpp"
#include "client/news/pool_report.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/local_time.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>

namespace muster::cli {
namespace {

// What `muster wait` prints of a job that has failed.
std::string failures_below(ApiClient& client, const WhyOptions& options, const Json& job) {
  const std::string& ns = options.target.ns;
  return failure_details(client, ns, job, [&](const Failures& failures) {
    return more_text(failures, options.job, ns);
  });
}

// Whether more nodes could help.
bool waits_for_nodes(const Json& why) {
  const auto says_so = [](const std::string& text) {
    return text.find("waiting for a slot") != text.npos;
  };
  return says_so(text_at(why, {"summary"})) ||
         std::ranges::any_of(at(why, {"details"}), [&says_so](const Json& line) {
           return line.is_string() && says_so(line.get_ref<const std::string&>());
         });
}

// Batch systems that have been asked for nodes. If that cannot be read, there are none.
void show_pools(ApiClient& client, const std::string& ns) {
  const auto reports = pool_reports(client, ns);
  if (!reports) return;
  const Millis now = wall_now();
  for (const PoolReport& one : *reports)
    if (!is_stale(one, now) || !one.allocations.empty())
      std::cout << "  " << on_one_line(pool_line(one, now)) << "\n";
}

}  // namespace

int execute(const WhyOptions& options) {
  const auto client = connect(options.target);
  std::string path = own_path(options.target.ns, options.job, "why");
  std::string index = options.index ? std::to_string(*options.index) : "";
  if (options.task) {
    auto job = object(*client, object_path(Kind::job, options.target.ns, options.job));
    if (!job)
      return fail(with_near_miss(*client, options.target.ns, Kind::job, options.job, job.error()));
    auto found = indexes_of_tasks(*job, std::to_string(*options.task));
    if (!found) return fail(found.error());
    index = std::move(*found);
  }
  if (!index.empty()) path += "?index=" + index;
  auto why = object(*client, path);
  if (!why)
    return fail(with_near_miss(*client, options.target.ns, Kind::job, options.job, why.error()));
  if (options.output == Output::json) {
    std::cout << dumped(*why, 2) << "\n";
    return kDone;
  }
  if (options.output == Output::yaml) {
    std::cout << to_yaml(*why);
    return kDone;
  }
  std::optional<Tasks> tasks;
  std::cout << "job/" << options.job;
  if (options.task) {
    std::cout << " task " << *options.task;
  } else if (options.index) {
    std::cout << "/" << index;
    // If it cannot be read, the index alone has to do.
    if (const auto job = object(*client, object_path(Kind::job, options.target.ns, options.job)))
      tasks = tasks_of(*job);
    if (const auto task = tasks ? tasks->number(*options.index) : std::nullopt)
      std::cout << " (task " << *task << ")";
  }
  std::cout << " " << text_at(*why, {"state"}) << ": "
            << on_one_line(localized(text_at(*why, {"summary"}))) << "\n";
  std::string failures;
  const bool failed = index.empty() && text_at(*why, {"state"}) == "Failed";
  const Json& details = at(*why, {"details"});
  const bool sets = std::ranges::any_of(details, [](const Json& line) {
    return line.is_string() && names_indexes(line.get_ref<const std::string&>());
  });
  if (failed || sets) {
    // If it cannot be read, the coordinator's own words do.
    if (const auto job = object(*client, object_path(Kind::job, options.target.ns, options.job))) {
      if (failed) failures = failures_below(*client, options, *job);
      tasks = tasks_of(*job);
    }
  }
  for (const Json& line : details)
    if (const auto text = line.get<std::string>();
        failures.empty() || !text.starts_with("failed indexes: "))
      std::cout << "  " << on_one_line(localized(with_tasks(text, tasks))) << "\n";
  std::cout << failures;
  if (waits_for_nodes(*why)) show_pools(*client, options.target.ns);
  return kDone;
}

Verb why_verb() {
  auto w = std::make_shared<Raw<WhyOptions>>();
  return {
      .title = {"Jobs", "why", "Explain what a job or an index is waiting for, or how it ended"},
      .rows = rows_of_index(
          {"what", "job/J[/INDEX]", "Job, or one index of it", &w->what, kAnything, kRequired},
          w->o.index, w->o.task),
      .asks = {&w->o.target},
      .footer = "Examples:\n  muster why job/sweep\n  muster why job/sweep/950",
      .finish = [w](const Given& given) -> Judged {
        // The configuration may name a form that is for other verbs.
        const Output wanted = read_output(given.settings.text("output"));
        if (wanted == Output::json || wanted == Output::yaml) w->o.output = wanted;
        std::string word = w->what;
        const char* flag = w->o.task ? "--task" : w->o.index ? "--index" : "";
        if (auto wrong = cut_index(word, flag, w->o.index)) return *wrong;
        return judged(read_job_name(word, w->o.job), w->o);
      }};
}

}  // namespace muster::cli
