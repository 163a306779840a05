// Rounds: which indexes run again.
#include "client/news/rounds.hpp"

#include "client/news/attempts.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

Json round_with(const std::string& name, const std::string& annotations, const std::string& done,
                const std::string& failed, bool complete = false) {
  return read_json(
      R"({"metadata":{"name":")" + name + R"(","annotations":{)" + annotations +
      R"(}},"spec":{"completions":10,"completionMode":"Indexed"},"status":{"completedIndexes":")" +
      done + R"(","failedIndexes":")" + failed + R"(","conditions":[{"type":")" +
      (complete ? "Complete" : "Failed") + R"(","status":"True"}]}})");
}

std::string chosen(const RetryWishes& wishes, const Json& job) {
  auto set = chosen_indexes(wishes, job);
  return set.ok() ? set->text() : set.error().message;
}

const RetryWishes kFailedOnes = {.failed = true};

TEST(Rounds, RetrySelectsFailedOrAllUnsuccessfulIndexes) {
  const Json job = round_with("j", "", "0-2,5", "3,7");
  EXPECT_EQ(chosen(kFailedOnes, job), "3,7");
  EXPECT_EQ(chosen({}, job), "3,4,6-9");
  EXPECT_EQ(chosen({.index = "5"}, job), "5");
  EXPECT_EQ(chosen({.index = "12"}, job),
            "job/j cannot be retried: it has no index 12 (it runs 0-9)");
  EXPECT_EQ(chosen(kFailedOnes, round_with("j", "", "0-9", "", true)),
            "job/j cannot be retried: all of its indexes have succeeded");
}

TEST(Rounds, RetryOfRunningIndexPointsToWhy) {
  Json job = round_with("j", "", "0-2", "");
  job["status"].erase("conditions");
  EXPECT_EQ(chosen({.index = "4"}, job),
            "job/j cannot be retried: index 4 has not finished; see: muster why job/j/4");
}

constexpr char kSecond[] =
    R"("muster.dev/retry-of":"j","muster.dev/round":"2","muster.dev/indexes":"3,7")";
constexpr char kThird[] =
    R"("muster.dev/retry-of":"j","muster.dev/round":"3","muster.dev/indexes":"5")";

// An index that has succeeded in any round does not run again.
TEST(Rounds, RoundsOfOneJobAreMerged) {
  const Json first = round_with("j", "", "0-2,4-6,8,9", "3,7");
  const Json second = round_with("j-r2", kSecond, "3", "7");
  const Json all = as_one({first, second});
  EXPECT_EQ(chosen(kFailedOnes, all), "7");
  EXPECT_EQ(round_of(all), 2);
  EXPECT_EQ(root_of(all), "j");
  EXPECT_FALSE(all_succeeded(all));
  // A round of other indexes does not hide the failed ones.
  const Json other = round_with("j-r3", kThird, "5", "", true);
  EXPECT_EQ(chosen(kFailedOnes, as_one({first, second, other})), "7");
  const Json last = round_with(
      "j-r4", R"("muster.dev/retry-of":"j","muster.dev/round":"4","muster.dev/indexes":"7")", "7",
      "", true);
  EXPECT_TRUE(all_succeeded(as_one({first, second, other, last})));
}

// Someone decided that cancelled indexes shall not run; only a name for them runs them again.
TEST(Rounds, CancelledIndexesAreNotFailed) {
  Json job = round_with("j", "", "0-4", "5-7,9");
  job["status"]["cancelledIndexes"] = "5-6";
  EXPECT_EQ(chosen(kFailedOnes, job), "7,9");
  EXPECT_EQ(chosen({}, job), "5-9");
  EXPECT_EQ(chosen({.index = "5"}, job), "5");
  job["status"]["failedIndexes"] = "5-6";
  EXPECT_EQ(chosen(kFailedOnes, job), "7-9") << "a job that was ended before they were tried";
  Json all = round_with("j", "", "0-4,7-9", "5-6");
  all["status"]["cancelledIndexes"] = "5-6";
  EXPECT_EQ(chosen(kFailedOnes, all),
            "job/j cannot be retried: none of its indexes has failed; run those that were "
            "cancelled with --index 5,6");
  Json again = round_with(
      "j-r2", R"("muster.dev/retry-of":"j","muster.dev/round":"2","muster.dev/indexes":"5")", "",
      "5");
  EXPECT_EQ(chosen(kFailedOnes, as_one({all, again})), "5") << "it has failed since";
  EXPECT_EQ(cancelled_indexes(as_one({all, again})).text(), "6");
}

TEST(Rounds, IndexThatFailsAfterSuccessStaysSucceeded) {
  const Json first = round_with("j", "", "0-9", "", true);
  const Json again = round_with("j-r2", kSecond, "3", "7");
  EXPECT_TRUE(all_succeeded(as_one({first, again})));
}

}  // namespace
}  // namespace muster::cli
