// The names of conditions and reasons, as the journal stores and the API shows them.
#include "core/job/facts/condition.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(Condition, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(ConditionType::damaged); ++i) {
    const auto type = static_cast<ConditionType>(i);
    EXPECT_EQ(condition_type(name(type)), type) << i;
  }
  for (int i = 0; i <= static_cast<int>(ConditionReason::unreadable); ++i) {
    const auto reason = static_cast<ConditionReason>(i);
    EXPECT_EQ(condition_reason(name(reason)), reason) << i;
  }
  EXPECT_EQ(condition_type("complete"), std::nullopt);
  EXPECT_EQ(condition_reason(""), std::nullopt);
}

TEST(Condition, NamesAreThoseOfKubernetes) {
  EXPECT_EQ(name(ConditionType::success_criteria_met), "SuccessCriteriaMet");
  EXPECT_EQ(name(ConditionType::failed), "Failed");
  EXPECT_EQ(name(ConditionReason::backoff_limit_exceeded), "BackoffLimitExceeded");
  EXPECT_EQ(name(ConditionReason::failed_indexes), "FailedIndexes");
  EXPECT_EQ(name(DisruptionReason::preemption_by_scheduler), "PreemptionByScheduler");
}

TEST(Condition, GangReasonsHaveMusterNames) {
  EXPECT_EQ(name(DisruptionReason::worker_unreachable), "WorkerUnreachable");
  EXPECT_EQ(name(DisruptionReason::worker_failed), "WorkerFailed");
  EXPECT_EQ(name(DisruptionReason::gang_member_failed), "GangMemberFailed");
}

}  // namespace
}  // namespace muster::core
