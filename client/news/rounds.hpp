// Rounds: further Jobs that run some indexes of a finished one, for `muster retry` and
// `muster run --retry-failed`.
//
// A round is a separate Job (JOB-r2 and so on) with the spec of the first, fresh limits, and the
// annotation muster.dev/indexes: only these indexes run, under their old numbers. The failed job
// stays unchanged as a record of what happened.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/inputs/wishes.hpp"
#include "client/terminal/json.hpp"
#include "core/index_set.hpp"

#include <string>
#include <vector>

namespace muster::cli {

// The job that this one is a round of, or itself.
std::string root_of(const Json& job);
// 1 for the first.
int round_of(const Json& job);

// The indexes of a new round. invalid: there are none, or they have not ended.
Result<core::IndexSet> chosen_indexes(const RetryWishes& wishes, const Json& job);

// All rounds of a job as one: an index that has succeeded in any round has succeeded; one that has
// failed in some round and succeeded in none has failed. It has the name of the latest round, from
// which the next one is made. `rounds`: at least one, ordered by number, all finished.
Json as_one(const std::vector<Json>& rounds);

// Whether every index of an Indexed job has succeeded.
bool all_succeeded(const Json& job);

// A job that has failed counts as succeeded once its rounds have done what was left. In the
// manifest of a job to be created, replaces each job that must succeed (muster.dev/after), as a
// whole or index by index, and has failed by the round that completes it: it has succeeded, or
// still runs. Rounds are found by their default names (JOB-r2 and so on). What has no such round
// stays.
Status wait_for_repairs(ApiClient& client, const std::string& ns, Json& manifest);

// Creates the round and returns it.
Result<Json> create_round(ApiClient& client, const std::string& ns, const RetryWishes& wishes,
                          const Json& job);

// "job.batch/J-r2 created: round 2 of job/J, index 3,7".
std::string round_text(const Json& round);

}  // namespace muster::cli
