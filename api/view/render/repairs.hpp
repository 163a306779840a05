// Repairs: what a job needs of which something never ran, because a job that it waits for failed
// (muster.dev/after). Both are repaired by new jobs, their rounds (muster retry).
#pragma once

#include "api/view/model/view.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// For each job of which `job` was let down: "index 2 never ran, because it failed in job a; now
// that job a-r2 runs it again, this takes: muster retry job/b --failed". `index`: only of this one.
std::vector<std::string> repairs_needed(const View& view, const core::Job& job,
                                        std::optional<uint32_t> index);

}  // namespace muster::api
