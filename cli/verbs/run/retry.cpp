// muster retry: runs some indexes of a job in another round (rounds.hpp), on a coordinator or, for
// an embedded run, in its directory.
#include "cli/verbs/run/run_here.hpp"
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/news/rounds.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>

namespace muster::cli {
namespace {

// Creates the round, prints its name and returns it.
Result<Json> retried(const RetryOptions& options) {
  const auto client = connect(options.target);
  auto job = object(*client, object_path(Kind::job, options.target.ns, options.job));
  if (!job) return job.error();
  if (at(*job, {"spec", "template", "spec", "containers"}).empty())  // only the owner sees them
    return invalid("job/" + options.job + " cannot be retried: it belongs to another user");
  auto made = create_round(*client, options.target.ns, options.wishes, *job);
  if (!made) return made.error();
  std::cout << round_text(*made) << std::endl;
  return made;
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
  auto round = retried(options);  // its client is already destroyed: only one per thread
  if (!round) return fail(round.error());
  if (!options.wait) return kDone;
  WaitOptions wait;
  wait.target = options.target;
  wait.jobs = {text_at(*round, {"metadata", "name"})};
  wait.known = known_of(*round);
  return execute(wait);
}

}  // namespace muster::cli
