// What users may not ask for.
#include "core/spec/rules/privileges.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace muster::core {
namespace {

JobSpec with_priority(std::optional<int32_t> priority, const std::string& name = "") {
  JobSpec spec;
  spec.pod.priority = priority;
  spec.pod.priority_class_name = name;
  return spec;
}

TEST(Privileges, P11PriorityAboveUserMaximumNeedsOperator) {
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
    EXPECT_EQ(!needs_privilege(with_priority(one.priority), one.most), one.allowed)
        << one.priority.value_or(0) << " of " << one.most;
  EXPECT_EQ(*needs_privilege(with_priority(7), 5),
            "spec.template.spec.priority: 7 is above the maximum for users, 5 "
            "(--user-priority-max); an operator may set more");
}

TEST(Privileges, P11SystemClassesAreForOperators) {
  for (const char* name : {"system-node-critical", "system-cluster-critical"})
    EXPECT_EQ(*needs_privilege(with_priority({}, name), 1'000'000'000),
              std::string("spec.template.spec.priorityClassName: ") + name +
                  " is for operators' jobs; leave it out");
}

}  // namespace
}  // namespace muster::core
