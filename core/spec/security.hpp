// Security: the securityContext of pods and containers, as far as a process can have it.
//
// A process runs as the agent's user or as the job's owner; a manifest may name that user, rule out
// root, and give up privileges. What it may not do is refused in api/kube/refused_fields.hpp.
#pragma once

#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

constexpr uint64_t kAllCapabilities = ~uint64_t{0};

// A capability as a bit of a mask, by its name without CAP_; ALL: all of them.
std::optional<uint64_t> capability_mask(std::string_view name);

// `path`: that of the pod's spec.
void validate_security(const std::string& path, const PodTemplate& pod, Violations& found);

}  // namespace muster::core
