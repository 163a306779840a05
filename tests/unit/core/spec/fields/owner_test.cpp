#include "core/spec/fields/owner.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

const Owner kAlice{1001, 100, "alice", {100, 2001}, "/home/alice"};

TEST(Owner, RoundTripsThroughAnnotations) {
  StringMap annotations = {{"a", "b"}};
  Violations found;
  keep_owner(kAlice, annotations, found);
  EXPECT_TRUE(found.empty());
  EXPECT_EQ(annotations.size(), 6u);
  EXPECT_EQ(owner_of(annotations), kAlice);
  EXPECT_EQ(owner_uid(annotations), 1001u);
}

TEST(Owner, IsUnsetWithoutUsers) {
  StringMap annotations;
  Violations found;
  keep_owner(std::nullopt, annotations, found);
  EXPECT_TRUE(found.empty());
  EXPECT_TRUE(annotations.empty());
  EXPECT_EQ(owner_of(annotations), std::nullopt);
}

TEST(Owner, AnnotationsMayBeRepeatedButNotForged) {
  StringMap annotations;
  Violations first;
  keep_owner(kAlice, annotations, first);
  Violations again;
  keep_owner(kAlice, annotations, again);
  EXPECT_TRUE(again.empty());
  for (const std::string_view key : kOwnerKeys) {
    StringMap forged = annotations;
    forged[std::string(key)] = "0";
    Violations found;
    keep_owner(kAlice, forged, found);
    ASSERT_EQ(found.list().size(), 1u) << key;
    EXPECT_EQ(found.list()[0].path, "metadata.annotations[" + std::string(key) + "]");
    Violations without;
    StringMap alone = {{std::string(key), "0"}};
    keep_owner(std::nullopt, alone, without);
    EXPECT_EQ(without.list().size(), 1u) << key;
  }
}

TEST(Owner, MalformedIdsAreNoOwner) {
  for (const char* bad : {"", "-1", "1001x", "4294967296", " 1"}) {
    const StringMap annotations = {{std::string(kOwnerUidKey), bad},
                                   {std::string(kOwnerGidKey), "1"}};
    EXPECT_EQ(owner_of(annotations), std::nullopt) << bad;
    EXPECT_EQ(owner_uid(annotations), std::nullopt) << bad;
  }
  const StringMap annotations = {{std::string(kOwnerUidKey), "1"},
                                 {std::string(kOwnerGidKey), "1"},
                                 {std::string(kOwnerGroupsKey), "1,x"}};
  EXPECT_EQ(owner_of(annotations), std::nullopt);
}

}  // namespace
}  // namespace muster::core
