// What a round of a job begins with, if attempts of its indexes ran out of memory or time and had
// more than the job's template says (muster.dev/retry-memory, ADR 76): less has been tried.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"

#include <string>

namespace muster::cli {

// Gives the round the most that any failed attempt of these indexes of the job had, and the steps
// after that. Attempts that are no longer in the history do not matter.
Status keep_steps(ApiClient& client, const std::string& ns, const Json& job,
                  const std::string& indexes, Json& round);

}  // namespace muster::cli
