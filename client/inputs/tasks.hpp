// Tasks: the numbers of `muster submit --array`, which a job's indexes stand for.
//
// Index I of such a job is the task with the I-th smallest number. People name tasks; the API names
// indexes.
#pragma once

#include "base/result.hpp"
#include "client/inputs/inputs.hpp"
#include "client/terminal/json.hpp"
#include "core/index_set.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// "7,3-5,4": numbers and ranges in any order, as people type them. invalid: it is no such set.
Result<core::IndexSet> typed_set(const std::string& text);

class Tasks {
 public:
  // invalid: the job is not an array, or its numbers are in a file that cannot be read here.
  static Result<Tasks> of(const Json& job);
  // Of the ranges that the history keeps ("1-10,20-30:2"). invalid: they are no such ranges.
  static Result<Tasks> of_ranges(const std::string& ranges);

  // The indexes of these tasks ("3,7-9"). invalid: not a set of numbers, or not tasks of this job.
  Result<core::IndexSet> indexes(const std::string& tasks) const;
  // The tasks of these indexes: "4,8-10".
  std::string numbers(const core::IndexSet& indexes) const;
  // That of an index; absent: the job has no such index.
  std::optional<int64_t> number(int64_t index) const;

 private:
  void add(uint32_t index, std::string_view number);

  std::map<uint32_t, uint32_t> index_of_;  // by number, ascending in both
  std::map<uint32_t, uint32_t> number_of_;
};

// Indexes as people name them: "task 7" and "tasks 5-9" of an array, else "index 7", "indexes 5-9".
std::string named_indexes(const core::IndexSet& indexes, const std::optional<Tasks>& tasks);
// The number by which people know an index: its task in an array, else its own.
int64_t known_number(const std::optional<Tasks>& tasks, int64_t index);
// A line of the coordinator's, which knows no tasks: "failed indexes: 1,3" of an array becomes
// "failed tasks: 11,13", and "index 1 never ran" becomes "task 11 never ran".
std::string with_tasks(const std::string& line, const std::optional<Tasks>& tasks);
// Whether that may change the line, so that the job's tasks are needed.
bool names_indexes(std::string_view line);
// The tasks of a job that is an array whose numbers can be read here.
std::optional<Tasks> tasks_of(const Json& job);

// The indexes that these tasks of the job are: "3,7-9".
Result<std::string> indexes_of_tasks(const Json& job, const std::string& tasks);

// Adds the variables that Slurm gives the tasks of an array. The id of the array is the job's name,
// that of a task the name of its pod. SLURM_JOBID is not among them: with it, Open MPI's mpirun
// would call srun. `numbers`: of the tasks, ascending; not empty.
void add_task_variables(Json& manifest, const std::vector<uint32_t>& numbers);
// Adds those that Slurm gives the script of any job that was submitted in `dir`.
void add_script_variables(Json& manifest, const std::string& dir);

}  // namespace muster::cli
