// The rules of a Job in words: what a person asks when it failed, or wonders when it will. Pure.
#pragma once

#include "base/clock.hpp"
#include "cli/output/json.hpp"

#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

// Rows "Retries:" and what it says, for each rule that the spec has.
std::vector<std::pair<std::string, std::string>> policy_rows(const Json& spec);

// "20 indexes/min, about 9m left"; empty when nothing has succeeded yet.
std::string pace_text(int64_t succeeded, int64_t left, Millis running_ms);

}  // namespace muster::cli
