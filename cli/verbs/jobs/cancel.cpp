// muster cancel: ends jobs, or single indexes of them, and keeps the jobs. Repeating it is not an
// error.
#include "cli/verbs/jobs/cancel.hpp"

#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/index_set.hpp"

#include <iostream>
#include <optional>

namespace muster::cli {
namespace {

Status cancel(ApiClient& client, const CancelOptions& options, const std::string& name) {
  Json body = Json::object();
  core::IndexSet asked;
  std::optional<Tasks> tasks;
  if (!options.task.empty()) {
    auto job = object(client, object_path(Kind::job, options.target.ns, name));
    if (!job) return job.error();
    auto of = Tasks::of(*job);
    if (!of) return of.error();
    auto found = of->indexes(options.task);
    if (!found) return found.error();
    asked = std::move(*found);
    tasks = std::move(*of);
  } else if (!options.index.empty()) {
    asked = core::IndexSet::parse_lenient(options.index, core::kAnyIndex);
  }
  if (!asked.empty()) body["indexes"] = asked.text();
  const auto answer = client.replace(own_path(options.target.ns, name, "cancel"), dumped(body));
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  const std::string title = std::string(kind_name(Kind::job)) + "/" + name;
  if (asked.empty()) {
    std::cout << title << " cancelled" << std::endl;
    return Nothing{};
  }
  const core::IndexSet ended =
      core::IndexSet::parse_lenient(text_at(read_json(answer->body), {"indexes"}), core::kAnyIndex);
  if (!ended.empty())
    std::cout << title << " " << named_indexes(ended, tasks) << " cancelled" << std::endl;
  if (const core::IndexSet late = asked.without(ended); !late.empty())
    std::cerr << "muster: warning: " << title << " " << named_indexes(late, tasks)
              << " had already ended" << std::endl;
  return Nothing{};
}

}  // namespace

int execute(const CancelOptions& options) {
  const auto client = connect(options.target);
  int code = kDone;
  for (const std::string& name : options.names) {
    const Status done = cancel(*client, options, name);
    if (done) continue;
    code = fail(with_near_miss(*client, options.target.ns, Kind::job, name, done.error()));
    if (code == kUnreachable) break;
  }
  return code;
}

Verb cancel_verb() {
  auto w = std::make_shared<Raw<CancelOptions, std::vector<std::string>>>();
  return {
      .title = {"Jobs", "cancel", "End a job or some of its indexes, and keep its record"},
      .rows = {{"what", "job/NAME...", "Jobs, as job/NAME or NAME", &w->what, kAnything, kRequired},
               {"--index", "SET", "Only these indexes, such as 3,7-9", &w->o.index},
               {"--task", "SET", kTaskHelp, &w->o.task, kAnything, 0, {"--index"}}},
      .asks = {&w->o.target},
      .footer =
          "Running pods get SIGTERM and, after their grace period, SIGKILL; nothing is retried. "
          "The "
          "job is Failed with the reason Cancelled, and get, describe, logs and why still show it. "
          "With --index or --task, the other indexes go on, and --max-fails does not count those "
          "that are cancelled; the job is Failed once all others have ended. wait, describe and "
          "the "
          "web page show them as cancelled, not as failed, and muster retry --failed leaves them "
          "out.\n"
          "To remove a job and its record as well, use muster delete.\n"
          "Examples:\n  muster cancel job/sweep\n  muster cancel job/sweep --task 7,20-29",
      .finish = [w](const Given& given) -> Judged {
        if (auto empty = check_filled(given, {{"--index", {w->o.index}}, {"--task", {w->o.task}}}))
          return *empty;
        if (!w->o.index.empty())
          if (auto wrong = read_set("--index", w->o.index)) return *wrong;
        return judged(read_job_names(w->what, w->o.names), w->o);
      }};
}

}  // namespace muster::cli
