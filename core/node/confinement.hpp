// Confinement: what the securityContext of a container means for its processes on a node.
//
// A process of a keeper that starts it as the job's owner always has no privileges and can gain
// none, and admission has compared the user, so this is for nodes where processes are the agent's
// own user's. That user is known only there.
#pragma once

#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core::node {

// fieldPath of a variable by which agents that know of none refuse the pod.
constexpr std::string_view kConfinementMark = "securityContext";

struct Confinement {
  std::optional<uint32_t> uid{}, gid{};  // that it must run as
  bool non_root = false;
  bool no_new_privileges = false;
  uint64_t dropped = 0;  // capabilities that it must not have (core/spec/security.hpp)
  bool operator==(const Confinement&) const = default;
  bool any() const { return *this != Confinement(); }
};

Confinement confinement_of(const SecurityContext& pod, const SecurityContext& container);

// Why a process that would run as this user must not be started, and what would be right; empty: it
// may.
std::string refusal_of(const Confinement& wanted, const std::string& container, uint32_t uid,
                       uint32_t gid);

}  // namespace muster::core::node
