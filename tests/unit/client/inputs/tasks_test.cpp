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

TEST(P16Tasks, TaskNumbersMapToIndexes) {
  const auto tasks = Tasks::of(array_job("1-10,20-40:10"));
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->indexes("7,20,40")->text(), "6,10,12");
  EXPECT_EQ(tasks->numbers(core::IndexSet::parse_lenient("6,10-11", 100)), "7,20,30");
  EXPECT_EQ(tasks->indexes("11").error().message, "--task: there is no task 11");
  EXPECT_EQ(tasks->indexes("20-30").error().message, "--task: there is no task 21");
  EXPECT_FALSE(tasks->indexes("x"));
}

TEST(P16Tasks, JobWithoutArrayHasNoTasks) {
  EXPECT_EQ(Tasks::of(read_json(R"({"metadata":{"name":"j"}})")).error().message,
            "job/j was not submitted with --array, so it has no tasks; use --index");
}

}  // namespace
}  // namespace muster::cli
