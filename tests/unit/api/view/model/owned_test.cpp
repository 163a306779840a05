// OwnedJobs: both directions agree, whatever is replaced.
#include "api/view/model/owned.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::OwnerRef owner(const char* uid) {
  return {"v1", "ConfigMap", uid, uid};
}

OwnedJob job(std::vector<core::OwnerRef> owners) {
  return {"default", "j", "uid", std::move(owners)};
}

TEST(OwnedJobs, BothDirectionsAgree) {
  OwnedJobs jobs;
  jobs.set(1, job({owner("a"), owner("b")}));
  jobs.set(2, job({owner("a")}));
  EXPECT_THAT(jobs.of("a"), ElementsAre(1, 2));
  EXPECT_THAT(jobs.of("b"), ElementsAre(1));
  jobs.set(1, job({owner("c"), owner("c")}));
  EXPECT_THAT(jobs.of("a"), ElementsAre(2));
  EXPECT_THAT(jobs.of("b"), IsEmpty());
  EXPECT_THAT(jobs.of("c"), ElementsAre(1));
  EXPECT_EQ(jobs.all().at(1).owners.size(), 2u);
  jobs.erase(1);
  jobs.erase(3);
  EXPECT_THAT(jobs.of("c"), IsEmpty());
  EXPECT_EQ(jobs.all().size(), 1u);
}

}  // namespace
}  // namespace muster::api
