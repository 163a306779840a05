// metadata.ownerReferences: read from JSON, and checked in Kubernetes' words.
#include "api/kube/objects/owner_refs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::api {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> complaints(const char* references) {
  core::Violations found;
  check_owner_refs(read_owner_refs({{"ownerReferences", Json::parse(references)}}), found);
  std::vector<std::string> lines;
  for (const Violation& violation : found.take())
    lines.push_back(violation.path + ": " + violation.detail);
  return lines;
}

TEST(OwnerRefs, AreReadWithWhoControls) {
  const auto owners = read_owner_refs(Json::parse(
      R"({"ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"c","uid":"u1",
          "controller":true},{"apiVersion":"v1","kind":"ConfigMap","name":"m","uid":"u2",
          "blockOwnerDeletion":true},"junk"]})"));
  ASSERT_EQ(owners.size(), 2u);
  EXPECT_EQ(owners[0], (core::OwnerRef{"batch/v1", "CronJob", "c", "u1", false, true}));
  EXPECT_EQ(owners[1], (core::OwnerRef{"v1", "ConfigMap", "m", "u2", true, false}));
  EXPECT_EQ(core::controller_of(owners), &owners[0]);
  EXPECT_EQ(core::controller_of({owners[1]}), nullptr);
  EXPECT_TRUE(read_owner_refs(Json::object()).empty());
}

TEST(OwnerRefs, NeedAllParts) {
  EXPECT_THAT(complaints(R"([{"apiVersion":"","kind":"","name":"","uid":""}])"),
              ElementsAre("metadata.ownerReferences.apiVersion: version must not be empty",
                          "metadata.ownerReferences.kind: must not be empty",
                          "metadata.ownerReferences.name: must not be empty",
                          "metadata.ownerReferences.uid: must not be empty"));
  EXPECT_THAT(complaints(R"([{"apiVersion":"apps/","kind":"A","name":"a","uid":"u"}])"),
              ElementsAre("metadata.ownerReferences.apiVersion: version must not be empty"));
  EXPECT_THAT(complaints(R"([{"apiVersion":"apps/v1","kind":"A","name":"a","uid":"u"}])"),
              ElementsAre());
}

TEST(OwnerRefs, OneControlsAndNoneIsAnEvent) {
  EXPECT_THAT(complaints(R"([{"apiVersion":"v1","kind":"A","name":"a","uid":"u","controller":true},
                             {"apiVersion":"v1","kind":"B","name":"b","uid":"v","controller":true}])"),
              ElementsAre("metadata.ownerReferences: Only one reference can have Controller set to "
                          "true. Found \"true\" in references for A/a and B/b"));
  EXPECT_THAT(complaints(R"([{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}])"),
              ElementsAre("metadata.ownerReferences: /v1, Kind=Event is disallowed from being an "
                          "owner"));
}

}  // namespace
}  // namespace muster::api
