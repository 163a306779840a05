// What a node may claim: patterns, and an offer that is held to them.
#include "core/cluster/nodes/claims.hpp"

#include "core/spec/values/volumes.hpp"
#include "core/spec/values/well_known.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(Claims, PatternsMatchTheWholeText) {
  struct Row {
    const char *pattern, *text;
    bool matches;
  };
  for (const Row& row : std::initializer_list<Row>{{"gpu", "gpu", true},
                                                   {"gpu", "gpus", false},
                                                   {"gpus", "gpu", false},
                                                   {"", "", true},
                                                   {"*", "", true},
                                                   {"*", "site/rack", true},
                                                   {"site/*", "site/rack", true},
                                                   {"site/*", "other/rack", false},
                                                   {"*-a", "b-a-a", true},
                                                   {"*-a", "b-a-b", false},
                                                   {"a*b*c", "a-b-b-c", true},
                                                   {"a*b*c", "a-c-b", false},
                                                   {"a**", "a", true}})
    EXPECT_EQ(matches(row.pattern, row.text), row.matches) << row.pattern << " " << row.text;
}

TEST(Claims, P06NodeKeepsOnlyAllowedSlotsResourcesAndLabels) {
  const NodeClaims claims{
      .labels = {"gpu=a*", "site/rack"}, .slots_max = 8, .resources_max = {{"nvidia.com/gpu", 2}}};
  Offer offer{.slots = 5000,
              .resources = {{"nvidia.com/gpu", 4}, {"site/fpga", 1}},
              .labels = {{"gpu", "a100"}, {"site/rack", "r7"}, {"site/secure", "yes"}}};
  EXPECT_EQ(hold(offer, claims),
            "5000 slots, the label site/secure=yes, 4 of nvidia.com/gpu, 1 of site/fpga");
  const Offer held{
      .slots = 8,
      .resources = {{"nvidia.com/gpu", 2},
                    {"claimed.muster.dev/nvidia.com.gpu", 2},
                    {"claimed.muster.dev/site.fpga", 1}},
      .labels = {{"gpu", "a100"}, {"site/rack", "r7"}, {"claimed.muster.dev/site.secure", "yes"}}};
  EXPECT_EQ(offer, held);
  EXPECT_EQ(hold(offer, claims), "") << "what has been held is within the claims";
  EXPECT_EQ(offer, held);
}

TEST(Claims, P06NodeOfAPoolSaysSo) {
  Offer offer{.slots = 1, .resources = {}, .labels = {{kPoolLabel, "another"}}};
  EXPECT_EQ(hold(offer, {.labels = {}, .pool = "hpc"}), "the label muster.dev/pool=another");
  EXPECT_EQ(offer.labels,
            (StringMap{{kPoolLabel, "hpc"}, {"claimed.muster.dev/muster.dev.pool", "another"}}));
}

TEST(Claims, P06TokenWithoutClaimsAllowsNoLabel) {
  Offer offer{.slots = 4000, .resources = {}, .labels = {{"kubernetes.io/hostname", "head"}}};
  hold(offer, {});
  EXPECT_EQ(offer.slots, NodeClaims::kSlots);
  EXPECT_EQ(offer.labels, (StringMap{{"claimed.muster.dev/kubernetes.io.hostname", "head"}}));
}

TEST(Claims, AgentOwnLabelsNeedNoClaim) {
  Offer offer{.slots = 1,
              .resources = {},
              .labels = {{std::string(kHollowKey), "true"}, {std::string(kVolumesLabel), "true"}}};
  const Offer before = offer;
  EXPECT_EQ(hold(offer, {}), "");
  EXPECT_EQ(offer, before);
}

TEST(Claims, AFrozenNodeKeepsWhatItHasAndGetsNothingNew) {
  const Offer now{.slots = 4,
                  .resources = {{"nvidia.com/gpu", 1}},
                  .labels = {{"gpu", "a100"}, {"claimed.muster.dev/x", "y"}}};
  Offer later = now;
  EXPECT_EQ(hold(later, claims_of(now)), "");
  EXPECT_EQ(later, now);
  later.labels["gpu"] = "h100";
  later.slots = 5;
  EXPECT_EQ(hold(later, claims_of(now)), "5 slots, the label gpu=h100");
}

TEST(Claims, AKeyThatIsTooLongForItsPrefixIsNotShown) {
  Offer offer{.slots = 1, .resources = {}, .labels = {{"site/" + std::string(60, 'a'), "x"}}};
  EXPECT_NE(hold(offer, {}), "");
  EXPECT_TRUE(offer.labels.empty());
}

TEST(Claims, ErrorsNameInvalidClaim) {
  const auto error = [](NodeClaims claims) { return claims_error(claims); };
  EXPECT_EQ(error({.labels = {"gpu=*", "*", "*=*", "site/*=r?"}}).substr(0, 24),
            "labels: \"site/*=r?\" is n");
  EXPECT_EQ(error({.labels = {"gpu=*", "*", "*=*", "a.b/c"}}), "");
  EXPECT_NE(error({.labels = {"=x"}}), "");
  EXPECT_EQ(error({.slots_max = 0}), "slotsMax: must be 1 to 1000000");
  EXPECT_EQ(error({.slots_max = 1'000'001}), "slotsMax: must be 1 to 1000000");
  EXPECT_EQ(error({.slots_max = 1'000'000}), "");
  EXPECT_EQ(error({.resources_max = {{"nvidia.com/gpu", -1}}}),
            "resources: nvidia.com/gpu: must be 0 to 2147483647");
  EXPECT_NE(error({.resources_max = {{"a b", 1}}}), "");
  EXPECT_EQ(error({.labels = std::vector<std::string>(101, "a")}),
            "labels: must be at most 100 patterns");
}

}  // namespace
}  // namespace muster::core
