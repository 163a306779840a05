#include "core/pod_name.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

namespace muster::core {
namespace {

const std::string kUid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";

TEST(PodName, IsUniqueWithinJob) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < 100'000; ++i) names.insert(pod_name("job", kUid, false, {i, 0}));
  EXPECT_EQ(names.size(), 100'000u);
  names.clear();
  for (uint32_t attempt = 0; attempt < 100'000; ++attempt)
    names.insert(pod_name("job", kUid, true, {7, attempt}));
  EXPECT_EQ(names.size(), 100'000u);
}

TEST(PodName, HasFormOfKubernetes) {
  std::regex number("job-[bcdfghjklmnpqrstvwxz2456789]{5}");
  std::regex indexed("job-12-[bcdfghjklmnpqrstvwxz2456789]{5}");
  EXPECT_TRUE(std::regex_match(pod_name("job", kUid, false, {12, 0}), number));
  EXPECT_TRUE(std::regex_match(pod_name("job", kUid, true, {12, 3}), indexed));
  EXPECT_NE(pod_name("job", kUid, false, {0, 0}), pod_name("job", "another", false, {0, 0}));
  EXPECT_EQ(pod_name("job", kUid, true, {12, 3}), pod_name("job", kUid, true, {12, 3}));
}

TEST(PodName, CutsTheJobAndNeverTheIndex) {
  const std::string longest(63, 'a');
  auto base = [](const std::string& name) { return name.substr(0, name.size() - 5); };
  EXPECT_EQ(base(pod_name(longest, kUid, false, {0, 0})), std::string(58, 'a'));
  EXPECT_EQ(base(pod_name(std::string(57, 'a'), kUid, false, {0, 0})), std::string(57, 'a') + "-");
  EXPECT_EQ(base(pod_name(longest, kUid, true, {123, 0})), std::string(53, 'a') + "-123-");
  EXPECT_EQ(pod_name(longest, kUid, true, {123, 0}).size(), 63u);
}

TEST(PodUid, IsDistinctAndWellFormed) {
  std::regex shape("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> uids;
  for (uint32_t index = 0; index < 300; ++index)
    for (uint32_t attempt = 0; attempt < 100; ++attempt) {
      std::string uid = pod_uid(kUid, {index, attempt});
      if (attempt == 0) {
        EXPECT_TRUE(std::regex_match(uid, shape)) << uid;
      }
      uids.insert(uid);
    }
  EXPECT_EQ(uids.size(), 30'000u);
  EXPECT_NE(pod_uid(kUid, {1, 2}), pod_uid("another", {1, 2}));
  EXPECT_EQ(pod_uid(kUid, {1, 2}), pod_uid(kUid, {1, 2}));
}

TEST(PodHostname, IsJobAndIndex) {
  EXPECT_EQ(pod_hostname("job", kUid, true, {3, 9}), "job-3");
  EXPECT_EQ(pod_hostname("job", kUid, false, {3, 0}), pod_name("job", kUid, false, {3, 0}));
}

// Names are derived again after every restart and upgrade, so they must never change.
TEST(PodName, NeverChanges) {
  EXPECT_EQ(pod_name("job", kUid, true, {0, 0}), "job-0-b7gk5");
  EXPECT_EQ(pod_name("job", kUid, false, {5, 0}), "job-hhplc");
  EXPECT_EQ(pod_uid(kUid, {0, 0}), "9baf4001-61e9-481b-957a-52ed0e2c9532");
}

}  // namespace
}  // namespace muster::core
