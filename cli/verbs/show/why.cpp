// muster why: what a job or one of its indexes is waiting for, or why it ended.
#include "cli/verbs/show/why.hpp"

#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/index_set.hpp"

#include <iostream>

namespace muster::cli {

int execute(const WhyOptions& options) {
  const auto client = connect(options.target);
  std::string path = own_path(options.target.ns, options.job, "why");
  std::string index = options.index ? std::to_string(*options.index) : "";
  if (options.task) {
    auto job = object(*client, object_path(Kind::job, options.target.ns, options.job));
    if (!job) return fail(job.error());
    auto found = indexes_of_tasks(*job, std::to_string(*options.task));
    if (!found) return fail(found.error());
    index = std::move(*found);
  }
  if (!index.empty()) path += "?index=" + index;
  auto why = object(*client, path);
  if (!why) return fail(why.error());
  if (options.output == Output::json) {
    std::cout << dumped(*why, 2) << "\n";
    return kDone;
  }
  if (options.output == Output::yaml) {
    std::cout << to_yaml(*why);
    return kDone;
  }
  std::cout << "job/" << options.job;
  if (!index.empty()) std::cout << "/" << index;
  std::cout << " " << text_at(*why, {"state"}) << ": " << text_at(*why, {"summary"}) << "\n";
  for (const Json& line : at(*why, {"details"}))
    std::cout << "  " << line.get<std::string>() << "\n";
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
               {"--task", "N", "Task of a job submitted with --array", &w->o.task,
                whole(0, kNumberMax)},
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
          w->o.index = static_cast<int64_t>(set->lowest());
          word.resize(last);
          if (w->o.task) return Usage{"--task: `" + w->what + "` names an index already"};
        }
        return judged(read_job_name(word, w->o.job), w->o);
      }};
}

}  // namespace muster::cli
