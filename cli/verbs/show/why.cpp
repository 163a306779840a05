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
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/local_time.hpp"
#include "core/index_set.hpp"

#include <iostream>

namespace muster::cli {
namespace {

// What `muster wait` prints of a job that has failed; empty: it cannot be read.
std::string failures_below(ApiClient& client, const WhyOptions& options) {
  const std::string& ns = options.target.ns;
  const auto job = object(client, object_path(Kind::job, ns, options.job));
  if (!job) return "";
  return failure_details(client, ns, *job, [&](const Failures& failures) {
    return more_text(failures, options.job, ns);
  });
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
  std::cout << "job/" << options.job;
  if (options.task)
    std::cout << " task " << *options.task;
  else if (!index.empty())
    std::cout << "/" << index;
  std::cout << " " << text_at(*why, {"state"}) << ": "
            << on_one_line(localized(text_at(*why, {"summary"}))) << "\n";
  const std::string failures =
      index.empty() && text_at(*why, {"state"}) == "Failed" ? failures_below(*client, options) : "";
  for (const Json& line : at(*why, {"details"}))
    if (const auto text = line.get<std::string>();
        failures.empty() || !text.starts_with("failed indexes: "))
      std::cout << "  " << on_one_line(localized(text)) << "\n";
  std::cout << failures;
  return kDone;
}

Verb why_verb() {
  auto w = std::make_shared<Raw<WhyOptions>>();
  Key form = *find_key(Section::client, "output");
  form.words = {"table", "json", "yaml"};
  form.help = "Output format";
  return {
      .title = {"Jobs", "why", "Explain what a job or an index is waiting for, or how it ended"},
      .rows = {{"what", "job/J[/INDEX]", "Job, or one index of it", &w->what, kAnything, kRequired},
               {"--index", "I", "Index of the job", &w->o.index, whole(0, kIndexMax)},
               {"--task",
                "N",
                "Task of a job submitted with --array",
                &w->o.task,
                whole(0, kNumberMax),
                0,
                {"--index"}},
               key_row(form, "-o,--output")},
      .asks = {&w->o.target},
      .footer = "Examples:\n  muster why job/sweep\n  muster why job/sweep/950",
      .finish = [w](const Given& given) -> Judged {
        // The configuration may name a form that is for other verbs.
        const Output wanted = read_output(given.settings.text("output"));
        if (wanted == Output::json || wanted == Output::yaml) w->o.output = wanted;
        std::string word = w->what;
        const size_t last = word.rfind('/');
        const bool kind_first = parse_kind(word.substr(0, word.find('/'))).has_value();
        if (last != std::string::npos && (!kind_first || word.find('/') != last)) {
          auto set = core::IndexSet::parse_strict(word.substr(last + 1), kIndexMax + 1);
          if (!set.ok() || set->size() != 1)
            return Usage{"`" + word + "`: must be job/J or job/J/INDEX, one index"};
          if (w->o.index || w->o.task)
            return Usage{std::string(w->o.task ? "--task" : "--index") + ": `" + w->what +
                         "` names an index already"};
          w->o.index = static_cast<int64_t>(set->lowest());
          word.resize(last);
        }
        return judged(read_job_name(word, w->o.job), w->o);
      }};
}

}  // namespace muster::cli
