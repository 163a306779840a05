// Dependents: which jobs go on when another one is retried.
#include "client/news/dependents.hpp"

#include "client/connect/objects.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

Json dependent(const std::string& name, const std::string& after, const std::string& reason,
               const std::string& more = "") {
  Json job = read_json(R"({"metadata":{"name":")" + name +
                       R"(","annotations":{"muster.dev/owner-uid":"1001","muster.dev/after":")" +
                       after + "\"" + more + R"(}},"status":{"conditions":[]}})");
  if (!reason.empty())
    job["status"]["conditions"].push_back({{"type", reason == "Done" ? "Complete" : "Failed"},
                                           {"status", "True"},
                                           {"reason", reason}});
  return job;
}

std::string second_round(const std::string& root) {
  return R"(,"muster.dev/round":"2","muster.dev/retry-of":")" + root + "\"";
}

// Of job a, which has been retried.
std::string dependents_in(const std::vector<Json>& jobs) {
  std::string text;
  for (const Json& one :
       dependents_of({"a", "a-r2"}, dependent("a", "", "FailedIndexes"), Json(jobs)))
    text += text_at(one, {"metadata", "name"}) + " ";
  return text;
}

constexpr const char* kNeverMet = "DependencyNeverSatisfied";

TEST(Dependents, FailedBecauseOfTheJob) {
  EXPECT_EQ(dependents_in({dependent("b", "ok:a", kNeverMet)}), "b ");
  EXPECT_EQ(dependents_in({dependent("b", "any:x,ok:a-r2", kNeverMet)}), "b ")
      << "of a round of it";
  EXPECT_EQ(dependents_in({dependent("b", "each:a", kNeverMet)}), "b ");
  EXPECT_EQ(dependents_in({dependent("b", "each:a", "FailedIndexes")}), "b ")
      << "some of its indexes";
  EXPECT_EQ(dependents_in({dependent("b", "ok:a", "FailedIndexes")}), "")
      << "it ran, and failed itself";
  EXPECT_EQ(dependents_in({dependent("b", "ok:x", kNeverMet)}), "") << "of another job";
  EXPECT_EQ(dependents_in({dependent("b", "notok:a", kNeverMet)}), "") << "as it did succeed";
  EXPECT_EQ(dependents_in({dependent("b", "ok:a", "")}), "") << "it waits";
  EXPECT_EQ(dependents_in({dependent("b", "ok:a", "Done")}), "");
}

TEST(Dependents, OthersJobsAndThoseThatWereRetriedStay) {
  Json others = dependent("b", "ok:a", kNeverMet);
  others["metadata"]["annotations"]["muster.dev/owner-uid"] = "1002";
  EXPECT_EQ(dependents_in({others}), "");
  const Json first = dependent("b", "ok:a", kNeverMet);
  EXPECT_EQ(dependents_in({first, dependent("b-r2", "ok:a-r2", "", second_round("b"))}), "");
  EXPECT_EQ(dependents_in({first, dependent("b-r2", "ok:a-r2", kNeverMet, second_round("b"))}),
            "b-r2 ")
      << "only the newest";
}

}  // namespace
}  // namespace muster::cli
