// Rounds: further Jobs that run some indexes of a finished one, for `muster retry` and
// `muster run --retry-failed`.
//
// A round is a Job of its own (JOB-r2 and so on) with the spec of the first one, fresh limits, and
// the annotation muster.dev/indexes: only these indexes run, under their old numbers. The failed
// job stays unchanged as a record of what happened.
#pragma once

#include "base/result.hpp"
#include "cli/client/http.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/options.hpp"
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

// All rounds of a job as one: an index that has succeeded in any of them has succeeded, one that
// has failed in any and succeeded in none has failed. Its name is that of the latest round, of
// which the next one is made. The rounds: by their number, at least one, all of them over.
Json as_one(const std::vector<Json>& rounds);

// Whether each index of an Indexed job has.
bool all_succeeded(const Json& job);

// Creates the round and returns it.
Result<Json> create_round(ApiClient& client, const std::string& ns, const RetryWishes& wishes,
                          const Json& job);

// "job.batch/J-r2 created: round 2 of job/J, index 3,7".
std::string round_text(const Json& round);

}  // namespace muster::cli
