// The policies of a Job in words, for `muster describe`. Pure.
#pragma once

#include "base/clock.hpp"
#include "client/terminal/json.hpp"

#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

// Label and text of each policy: always "Retries:", the others if the spec sets them.
std::vector<std::pair<std::string, std::string>> policy_rows(const Json& spec);

// "20 indexes/min, about 9m left"; empty until something has succeeded.
std::string pace_text(int64_t succeeded, int64_t left, Millis running_ms);

}  // namespace muster::cli
