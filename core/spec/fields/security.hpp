// Security: the securityContext of pods and containers, as far as it applies to processes.
//
// A process runs as the agent's user or as the job's owner; a manifest may name that user, rule out
// root, and give up privileges. api/kube/objects/refused_fields.hpp refuses what it may not do.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

constexpr uint64_t kAllCapabilities = ~uint64_t{0};

// The bit mask of a capability, by its name with or without CAP_; ALL: all of them.
std::optional<uint64_t> capability_mask(std::string_view name);

// `path`: of the pod's spec.
void validate_security(const std::string& path, const PodTemplate& pod, Violations& found);

}  // namespace muster::core
