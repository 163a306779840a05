// Dependents: jobs that failed because another one did (muster.dev/after), and that can go on once
// that one is retried. A finished job stays as it is, so they go on as rounds (rounds.hpp).
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace muster::cli {

// Those of `jobs`, in their order, that failed because one of these did not succeed, were not
// retried since and have the same owner as `job`. Of those that follow index by index, some indexes
// may have failed by themselves. Pure.
std::vector<Json> dependents_of(const std::set<std::string>& names, const Json& job,
                                const Json& jobs);

struct Dependents {
  std::vector<Json> rounds;       // that were created
  std::vector<std::string> left;  // dependents that cannot go on yet, with the reason
};

// Creates rounds of the dependents of a job that has just been retried, of theirs, and so on, with
// the indexes that never ran. Without `create`, `rounds` has the direct ones as they are.
Result<Dependents> retry_dependents(ApiClient& client, const std::string& ns, const Json& job,
                                    bool create);

}  // namespace muster::cli
