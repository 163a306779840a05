// Tasks: the numbers of an array and the indexes that stand for them.
#include "client/inputs/tasks.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

Json array_job(const std::string& array) {
  int32_t at_once = 0;
  const auto inputs = array_inputs(array, at_once);
  Json job =
      read_json(R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"containers":[{"env":)"
                R"j([{"name":"SLURM_ARRAY_TASK_ID","value":"$(MUSTER_INPUT)"}]}]}}}})j");
  add_inputs(job, *inputs);
  return job;
}

// NAME=VALUE of the numbers that Slurm would give the tasks of this array.
std::string numbers_of(const std::string& array) {
  int32_t at_once = 0;
  Json job = read_json(R"({"spec":{"template":{"spec":{"containers":[{}]}}}})");
  add_task_variables(job, array_inputs(array, at_once)->numbers);
  std::string text;
  for (const Json& one : at(job, {"spec", "template", "spec", "containers"})[0]["env"]) {
    const std::string name = text_at(one, {"name"}), value = text_at(one, {"value"});
    if (name.starts_with("SLURM_ARRAY_TASK_") && !value.starts_with('$'))
      text += name.substr(17) + "=" + value + " ";
  }
  return text;
}

TEST(Tasks, KnowTheirArrayAsInSlurm) {
  EXPECT_EQ(numbers_of("3-9:3"), "COUNT=3 MIN=3 MAX=9 STEP=3 ");
  EXPECT_EQ(numbers_of("7"), "COUNT=1 MIN=7 MAX=7 STEP=1 ");
  EXPECT_EQ(numbers_of("1,5,9-12%2"), "COUNT=6 MIN=1 MAX=12 STEP=1 ");
  EXPECT_EQ(numbers_of("2-4,0,6:1"), "COUNT=5 MIN=0 MAX=6 STEP=1 ");
}

TEST(P16Tasks, TheHistoryKeepsThemAsRanges) {
  const auto tasks = Tasks::of_ranges("1-3,20-40:10");
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->number(2), 3);
  EXPECT_EQ(tasks->number(4), 30);
  EXPECT_EQ(tasks->number(6), std::nullopt);
  for (const char* text : {"", "x", "3-1", "1\n2", "1,1"})
    EXPECT_FALSE(Tasks::of_ranges(text)) << text;
}

TEST(P16Tasks, TaskNumbersMapToIndexes) {
  const auto tasks = Tasks::of(array_job("1-10,20-40:10"));
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->indexes("7,20,40")->text(), "6,10,12");
  EXPECT_EQ(tasks->numbers(core::IndexSet::parse_lenient("6,10-11", 100)), "7,20,30");
  EXPECT_EQ(tasks->indexes("11").error().message, "--task: there is no task 11");
  EXPECT_EQ(tasks->indexes("20-30").error().message, "--task: there is no task 21");
  EXPECT_FALSE(tasks->indexes("x"));
  EXPECT_EQ(tasks->indexes("40,1-3,2,7,7")->text(), "0-2,6,12") << "in any order";
  EXPECT_EQ(tasks->indexes("7,x").error().message,
            "--task: `7,x` is not a set of numbers such as 3,7-9");
  EXPECT_FALSE(tasks->indexes(""));
}

TEST(Tasks, TypedSetsAreSets) {
  EXPECT_EQ(typed_set("5,3")->text(), "3,5");
  EXPECT_EQ(typed_set("1-3,2-4,7-7")->text(), "1-4,7");
  EXPECT_EQ(typed_set("2147483647")->text(), "2147483647");
  for (const char* wrong : {"3-1", "1-", "-1", "x", "1-2-3", "-", "3,-", "2147483648", "1 2"})
    EXPECT_FALSE(typed_set(wrong)) << wrong;
}

TEST(P16Tasks, PeopleReadTasks) {
  const auto tasks = tasks_of(array_job("10-12,20"));
  EXPECT_EQ(named_indexes(*core::IndexSet::parse_strict("1", 4), tasks), "task 11");
  EXPECT_EQ(named_indexes(*core::IndexSet::parse_strict("1-3", 4), tasks), "tasks 11,12,20");
  EXPECT_EQ(named_indexes(*core::IndexSet::parse_strict("1-3", 4), {}), "indexes 1-3");
  EXPECT_EQ(with_tasks("failed indexes: 1-3", tasks), "failed tasks: 11,12,20");
  EXPECT_EQ(with_tasks("cancelled indexes: 0", tasks), "cancelled tasks: 10");
  EXPECT_EQ(with_tasks("index 1 failed indexes: 2", tasks), "index 1 failed indexes: 2");
  EXPECT_EQ(with_tasks("failed indexes: 1-3", {}), "failed indexes: 1-3");
  EXPECT_EQ(with_tasks("index 1 never ran, because", tasks), "task 11 never ran, because");
  EXPECT_EQ(with_tasks("indexes 0-1 never ran", tasks), "tasks 10,11 never ran");
  EXPECT_EQ(with_tasks("index 1 never ran", {}), "index 1 never ran");
  EXPECT_EQ(tasks->number(3), 20);
  EXPECT_EQ(tasks->number(4), std::nullopt);
  EXPECT_EQ(tasks->number(-1), std::nullopt);
  EXPECT_FALSE(tasks_of(read_json(R"({"metadata":{"name":"j"}})")));
}

TEST(P16Tasks, JobWithoutArrayHasNoTasks) {
  EXPECT_EQ(Tasks::of(read_json(R"({"metadata":{"name":"j"}})")).error().message,
            "job/j was not submitted with --array, so it has no tasks; use --index");
}

}  // namespace
}  // namespace muster::cli
