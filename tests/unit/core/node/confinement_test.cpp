// What a securityContext means for a process of the agent's user.
#include "core/node/confinement.hpp"

#include "core/spec/fields/security.hpp"

#include <gtest/gtest.h>

namespace muster::core::node {
namespace {

TEST(Confinement, TheContainersWishesOverrideThePods) {
  SecurityContext pod, container;
  EXPECT_FALSE(confinement_of(pod, container).any());
  pod.run_as_user = 7;
  pod.run_as_group = 8;
  pod.run_as_non_root = true;
  EXPECT_EQ(confinement_of(pod, container), (Confinement{7, 8, true, false, 0}));
  container.run_as_user = 9;
  container.run_as_non_root = false;
  container.escalation = false;
  container.dropped_capabilities = {"NET_RAW", "CAP_CHOWN"};
  EXPECT_EQ(confinement_of(pod, container), (Confinement{9, 8, false, true, 1u << 13 | 1u}));
  container.dropped_capabilities = {"ALL"};
  EXPECT_EQ(confinement_of(pod, container).dropped, kAllCapabilities);
  container.escalation = true;
  EXPECT_FALSE(confinement_of(pod, container).no_new_privileges);
}

TEST(Confinement, CapabilityNamesMapToBits) {
  EXPECT_EQ(capability_mask("SYS_ADMIN"), uint64_t{1} << 21);
  EXPECT_EQ(capability_mask("CHECKPOINT_RESTORE"), uint64_t{1} << 40);
  EXPECT_EQ(capability_mask("sys_admin"), std::nullopt);
  EXPECT_EQ(capability_mask(""), std::nullopt);
}

TEST(Confinement, RefusesUserOtherThanThatOfNode) {
  const std::string root = refusal_of({.non_root = true}, "main", 0, 0);
  EXPECT_TRUE(root.starts_with("container has runAsNonRoot and image will run as root")) << root;
  EXPECT_EQ(refusal_of({.non_root = true}, "main", 1000, 0), "");
  EXPECT_EQ(refusal_of({.uid = 1000, .gid = 100, .non_root = true}, "main", 1000, 100), "");
  EXPECT_EQ(refusal_of({.uid = 1000}, "main", 0, 0),
            "runAsUser is 1000, but this node runs processes as uid 0; omit it, or run the agent "
            "as that user");
  EXPECT_TRUE(refusal_of({.gid = 0}, "main", 1000, 100).starts_with("runAsGroup is 0, "));
}

}  // namespace
}  // namespace muster::core::node
