// Fields that this version does not act on yet: they are refused by name, never ignored in silence.
#pragma once

#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <string>

namespace muster::core {

inline constexpr const char* kNotSupported = "not supported by this version of muster";

Violations unsupported_fields(const JobSpec& spec);

}  // namespace muster::core
