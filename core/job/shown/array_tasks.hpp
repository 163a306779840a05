// The tasks of an array: what `muster submit --array` numbers its indexes by. Pure.
#pragma once

#include "core/spec/fields/job_spec.hpp"

#include <cstdint>
#include <vector>

namespace muster::core {

// By index, in ascending order; empty: the job is no array, or they are in a file on its nodes.
std::vector<uint32_t> array_tasks(const JobObject& job);

}  // namespace muster::core
