#include "core/node/confinement.hpp"

#include "core/spec/fields/security.hpp"

namespace muster::core::node {
namespace {

std::optional<uint32_t> id_of(const std::optional<int64_t>& own,
                              const std::optional<int64_t>& pod) {
  const auto& wanted = own ? own : pod;
  return wanted ? std::optional(static_cast<uint32_t>(*wanted)) : std::nullopt;
}

std::string other_id(const char* field, uint32_t wanted, const char* what, uint32_t has) {
  return std::string(field) + " is " + std::to_string(wanted) +
         ", but this node runs processes as " + what + " " + std::to_string(has) +
         "; omit it, or run the agent as that user";
}

}  // namespace

Confinement confinement_of(const SecurityContext& pod, const SecurityContext& container) {
  Confinement out;
  out.uid = id_of(container.run_as_user, pod.run_as_user);
  out.gid = id_of(container.run_as_group, pod.run_as_group);
  out.non_root = container.run_as_non_root.value_or(pod.run_as_non_root.value_or(false));
  out.no_new_privileges = !container.escalation.value_or(true);
  for (const std::string& name : container.dropped_capabilities)
    out.dropped |= capability_mask(name).value_or(0);
  return out;
}

std::string refusal_of(const Confinement& wanted, const std::string& container, uint32_t uid,
                       uint32_t gid) {
  if (wanted.non_root && uid == 0)
    return "container has runAsNonRoot and image will run as root (container: " + container +
           "); run the agent as another user, or omit runAsNonRoot";
  if (wanted.uid && *wanted.uid != uid) return other_id("runAsUser", *wanted.uid, "uid", uid);
  if (wanted.gid && *wanted.gid != gid) return other_id("runAsGroup", *wanted.gid, "gid", gid);
  return "";
}

}  // namespace muster::core::node
