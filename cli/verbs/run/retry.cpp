// muster retry: runs some indexes of a job in another round (rounds.hpp), on a coordinator or, for
// an embedded run, in its directory.
#include "cli/verbs/run/retry.hpp"

#include "cli/verbs/jobs/wait.hpp"
#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/run/run_here.hpp"
#include "cli/verbs/run/run_options.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/news/dependents.hpp"
#include "client/news/rounds.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

// Retries the jobs that failed because this one did, or says which these are.
Status go_on(ApiClient& client, const RetryOptions& options, const Json& job,
             std::vector<Json>& rounds) {
  auto found = retry_dependents(client, options.target.ns, job, options.dependents);
  // Without --dependents, they are only a hint.
  if (!found) return options.dependents ? Status(found.error()) : Status(Nothing{});
  if (options.dependents) {
    for (Json& round : found->rounds) {
      std::cout << round_text(round) << std::endl;
      rounds.push_back(std::move(round));
    }
    for (const std::string& one : found->left) std::cerr << "not retried: " << one << std::endl;
    return Nothing{};
  }
  std::string names;
  for (const Json& one : found->rounds)
    names += (names.empty() ? "job/" : ", job/") + text_at(one, {"metadata", "name"});
  if (!names.empty())
    std::cerr << names << " failed because of job/" << options.job
              << " and can go on now: muster retry job/NAME, or all at once with --dependents\n";
  return Nothing{};
}

// Creates the rounds, prints their names and returns them.
Result<std::vector<Json>> retried(const RetryOptions& options) {
  const auto client = connect(options.target);
  auto job = object(*client, object_path(Kind::job, options.target.ns, options.job));
  if (!job) return with_near_miss(*client, options.target.ns, Kind::job, options.job, job.error());
  if (at(*job, {"spec", "template", "spec", "containers"}).empty())  // only the owner sees them
    return invalid("job/" + options.job + " cannot be retried: it belongs to another user");
  auto made = create_round(*client, options.target.ns, options.wishes, *job);
  if (!made) return made.error();
  std::cout << round_text(*made) << std::endl;
  std::vector<Json> rounds = {std::move(*made)};
  if (Status gone_on = go_on(*client, options, *job, rounds); !gone_on) return gone_on.error();
  return rounds;
}

}  // namespace

int execute(const RetryOptions& options) {
  if (!options.data_dir.empty()) {
    if (options.target.named)
      return fail(kUsage,
                  "retry: --data-dir is for a run on this machine; --api or MUSTER_API selects a "
                  "coordinator");
    RunOptions run;
    run.target = options.target;
    run.data_dir = options.data_dir;
    run.slots = options.slots;
    run.retry = options.wishes;
    run.retry->job = options.job;
    return retry_here(run);
  }
  auto rounds = retried(options);  // its client is already destroyed: only one per thread
  if (!rounds) return fail(rounds.error());
  if (!options.wait) return kDone;
  WaitOptions wait;
  wait.target = options.target;
  for (const Json& round : *rounds) wait.jobs.push_back(text_at(round, {"metadata", "name"}));
  wait.known = known_of(rounds->front());
  return execute(wait);
}

Verb retry_verb() {
  auto w = std::make_shared<Raw<RetryOptions>>();
  RetryOptions& o = w->o;
  return {
      .title = {"Jobs", "retry", "Run indexes of a finished job again, as a new job"},
      .rows = {{"job", "job/J", "Job to retry; it is not changed", &w->what},
               {"--failed", "", "Retry the indexes that failed, without those that were cancelled",
                &o.wishes.failed},
               {"--index",
                "SET",
                "Indexes to retry, such as 3,7-9 (default: all that have not succeeded)",
                &o.wishes.index,
                kAnything,
                0,
                {"--failed"}},
               {"--task", "SET", kTaskHelp, &o.wishes.task, kAnything, 0, {"--failed", "--index"}},
               {"--name", "NAME", "Name of the new job (default: J-r2, J-r3, ...)", &o.wishes.name},
               {"--dependents", "",
                "Also retry jobs that failed because this one did (--after), as far as they never "
                "ran",
                &o.dependents},
               {"--wait", "", "Wait until the new jobs are Complete or Failed", &o.wait},
               {"--data-dir",
                "D",
                "Retry the job of muster run --data-dir D, here and without a coordinator, and "
                "wait for it",
                &o.data_dir,
                kAnything,
                0,
                {"--wait", "--dependents"}},
               {"--slots",
                "N",
                "With --data-dir, slots on this machine (default: as many as the run had)",
                &o.slots,
                whole(1, kNumberMax),
                0,
                {},
                "--data-dir"}},
      .asks = {&o.target},
      .footer =
          "Examples:\n  muster retry job/sweep --failed\n  muster retry job/sweep --index 3,7-9 "
          "--wait\n  muster retry job/clean --failed --dependents\n  muster retry --data-dir "
          "./sweep --failed\n"
          "Indexes keep their numbers (JOB_COMPLETION_INDEX) and get all their retries again.",
      .finish = [w](const Given& given) -> Judged {
        RetryWishes& wishes = w->o.wishes;
        if (auto empty =
                check_filled(given, {{"--index", {wishes.index}}, {"--task", {wishes.task}}}))
          return *empty;
        if (auto wrong = read_set("--index", wishes.index)) return *wrong;
        if (w->what.empty() && w->o.data_dir.empty()) return Usage{"which job? muster retry job/J"};
        if (w->what.empty()) return w->o;
        return judged(read_job_name(w->what, w->o.job), w->o);
      }};
}

}  // namespace muster::cli
