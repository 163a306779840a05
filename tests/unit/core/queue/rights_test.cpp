// What users may not ask for.
#include "core/queue/rights.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace muster::core {
namespace {

// Why a user without special rights may not create it outside of stored queues.
std::optional<std::string> lacks(const JobSpec& spec, int32_t priority_max) {
  return lacks_rights({}, spec, {}, priority_max);
}

JobSpec with_priority(std::optional<int32_t> priority, const std::string& name = "") {
  JobSpec spec;
  spec.pod.priority = priority;
  spec.pod.priority_class_name = name;
  return spec;
}

TEST(Rights, P11PriorityAboveUserMaximumNeedsOperator) {
  struct {
    std::optional<int32_t> priority;
    int32_t most;
    bool allowed;
  } const cases[] = {
      {{}, 0, true},
      {0, 0, true},
      {-5, 0, true},
      {1, 0, false},
      {2'000'000'000, 0, false},
      {10, 10, true},
      {11, 10, false},
      {std::numeric_limits<int32_t>::max(), 1'000'000'000, false},
  };
  for (const auto& one : cases)
    EXPECT_EQ(!lacks(with_priority(one.priority), one.most), one.allowed)
        << one.priority.value_or(0) << " of " << one.most;
  EXPECT_EQ(*lacks(with_priority(7), 5),
            "spec.template.spec.priority: 7 is above the maximum for users, 5 "
            "(--user-priority-max); an operator may set more");
}

TEST(Rights, P11SystemClassesAreForOperators) {
  for (const char* name : {"system-node-critical", "system-cluster-critical"})
    EXPECT_EQ(*lacks(with_priority({}, name), 1'000'000'000),
              std::string("spec.template.spec.priorityClassName: ") + name +
                  " is for operators' jobs; leave it out");
}

JobMeta job_of(uint32_t uid, const std::string& name, const std::string& queue,
               const std::string& groups = "") {
  JobMeta meta;
  meta.annotations = {{std::string(kOwnerKey), name},
                      {std::string(kOwnerUidKey), std::to_string(uid)},
                      {std::string(kOwnerGidKey), "100"},
                      {std::string(kOwnerGroupsKey), groups}};
  if (!queue.empty()) meta.annotations[std::string(kQueueKey)] = queue;
  return meta;
}

QueueSet site() {
  Queue small{.name = "default"};
  small.priority_max = 3;
  small.time_default_s = 600;
  small.time_max_s = 3600;
  Queue lab{.name = "lab"};
  lab.users = {"ann"};
  lab.groups = {2000, kNoGroup};
  lab.group_names = {"ml", "gone"};
  return {{small, lab}, {{"high", {100}}, {"low", {-5}}}};
}

TEST(Rights, QueueIsForItsUsersAndGroups) {
  const QueueSet set = site();
  EXPECT_FALSE(lacks_rights(job_of(7, "ann", "lab"), {}, set, 0));
  EXPECT_FALSE(lacks_rights(job_of(8, "ben", "lab", "50,2000"), {}, set, 0));
  EXPECT_EQ(
      *lacks_rights(job_of(8, "ben", "lab", "50"), {}, set, 0),
      "queue lab is only for the user ann and members of the groups ml, gone; an operator may "
      "add you (muster queue lab --users or --groups)");
  JobMeta operators = job_of(9, "eve", "lab");
  operators.annotations[std::string(kOwnerRoleKey)] = "operator";
  EXPECT_FALSE(lacks_rights(operators, {}, set, 0));
  EXPECT_FALSE(lacks_rights(job_of(8, "ben", ""), {}, set, 0));
}

TEST(Rights, QueuesMaximumOfPrioritiesReplacesTheCoordinators) {
  const QueueSet set = site();
  const JobMeta ann = job_of(7, "ann", "");
  EXPECT_FALSE(lacks_rights(ann, with_priority(3), set, 0));
  EXPECT_EQ(*lacks_rights(ann, with_priority(4), set, 100),
            "spec.template.spec.priority: 4 is above the maximum for users, 3 of queue default; an "
            "operator may set more");
  EXPECT_EQ(*lacks_rights(ann, with_priority({}, "high"), set, 100),
            "spec.template.spec.priorityClassName: high (100) is above the maximum for users, 3 of "
            "queue default; an operator may set more");
  EXPECT_FALSE(lacks_rights(ann, with_priority({}, "low"), set, 0));
  EXPECT_TRUE(lacks_rights(ann, with_priority(999, "low"), set, 0))
      << "it would count if the class were deleted";
  QueueSet low = set;
  low.queues[0].priority_max = -1;
  EXPECT_FALSE(lacks_rights(ann, {}, low, 0)) << "it gets the queue's";
  EXPECT_FALSE(lacks_rights(job_of(7, "ann", "lab"), with_priority(4), set, 4));
  EXPECT_TRUE(lacks_rights(job_of(7, "ann", "lab"), with_priority(5), set, 4));
}

TEST(Rights, JobEntersAQueueThatExistsWithinItsTimeLimit) {
  const QueueSet set = site();
  const auto enter = [&set](const JobMeta& meta, const JobSpec& spec) {
    Violations found;
    enter_queue(meta, spec, set, found);
    return found.take();
  };
  JobSpec spec;
  const auto without = enter(job_of(7, "ann", ""), spec);
  ASSERT_EQ(without.size(), 1u);
  EXPECT_EQ(without[0].kind, Violation::Kind::required);
  EXPECT_EQ(without[0].detail,
            "pods in queue default have a time limit of at most 1h; an operator may raise it");
  take_time_limit(job_of(7, "ann", ""), spec, set);
  EXPECT_EQ(spec.pod.active_deadline_s, 600);
  EXPECT_TRUE(enter(job_of(7, "ann", ""), spec).empty());
  spec.pod.active_deadline_s = 3600;
  EXPECT_TRUE(enter(job_of(7, "ann", ""), spec).empty());
  spec.pod.active_deadline_s = 3601;
  const auto beyond = enter(job_of(7, "ann", ""), spec);
  ASSERT_EQ(beyond.size(), 1u);
  EXPECT_EQ(beyond[0].path, "spec.template.spec.activeDeadlineSeconds");
  EXPECT_EQ(beyond[0].detail,
            "must not be above the time limit of queue default, 3600 (1h); an operator may raise "
            "it");
  EXPECT_TRUE(enter(job_of(7, "ann", "lab"), spec).empty());
  const auto unknown = enter(job_of(7, "ann", "lap"), spec);
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].path, "metadata.annotations[muster.dev/queue]");
  EXPECT_EQ(unknown[0].kind, Violation::Kind::not_found);
  JobSpec classy = with_priority({}, "hihg");
  ASSERT_EQ(enter(job_of(7, "ann", "lab"), classy).size(), 1u);
  JobSpec critical = with_priority({}, "system-node-critical");
  EXPECT_TRUE(enter(job_of(7, "ann", "lab"), critical).empty());
}

TEST(Rights, GroupsAndQueuesThatDoNotExistAreDoubtful) {
  QueueSet set;
  set.queues = {{.name = "a",
                 .groups = {7, kNoGroup},
                 .group_names = {"lab", "lap"},
                 .preempts = std::vector<std::string>{"a", "default", "b"}},
                {.name = "c"}};
  EXPECT_EQ(doubts_about(set.queues[0], set),
            (std::vector<std::string>{"spec.groups: there is no group lap now; it has no members",
                                      "spec.preemption.queues: there is no queue b now"}));
  EXPECT_TRUE(doubts_about(set.queues[1], set).empty());
}

TEST(Rights, DefaultClassIsTheLowestOfSeveral) {
  EXPECT_FALSE(default_class({{"a", {7}}}));
  EXPECT_EQ(default_class({{"a", {7, true}}, {"b", {5, true}}, {"c", {1}}})->value, 5);
}

}  // namespace
}  // namespace muster::core
