// Confinement: what the securityContext of a container means for its processes on a node.
//
// A process that a keeper starts as the job's owner never has privileges and can gain none, and
// admission has checked the user. So this is for nodes where processes run as the agent's user,
// which is known only there.
#pragma once

#include "core/spec/fields/job_spec.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core::node {

// fieldPath of a variable that makes agents without support for this refuse the pod.
constexpr std::string_view kConfinementMark = "securityContext";

struct Confinement {
  std::optional<uint32_t> uid{}, gid{};  // must run as these
  bool non_root = false;
  bool no_new_privileges = false;
  uint64_t dropped = 0;  // capabilities it must not have (core/spec/fields/security.hpp)
  bool operator==(const Confinement&) const = default;
  bool any() const { return *this != Confinement(); }
};

Confinement confinement_of(const SecurityContext& pod, const SecurityContext& container);

// Why a process that would run as this user must not be started, and what would be right; empty: it
// may be started.
std::string refusal_of(const Confinement& wanted, const std::string& container, uint32_t uid,
                       uint32_t gid);

}  // namespace muster::core::node
