// Joblog: attempts as tab-separated lines for scripts, with the columns of GNU parallel's --joblog
// and more:
//
//   Seq Host Starttime JobRuntime Send Receive Exitval Signal Command Index Attempt Counted Pod
//   Usertime Systemtime Peakmemory Waittime Endtime
//
// Seq is the index plus 1 (of a NonIndexed job, the number of the line). Starttime is in seconds
// since 1970 and JobRuntime in seconds, both with milliseconds, and 0.000 if the attempt never
// started. Send and Receive are always 0. Exitval is 128 + Signal for a signal. Command is quoted
// for a shell, with the input of the index; tabs and line breaks in it are \t and \n. Counted is
// success, failure, cancelled or none. Usertime and Systemtime are CPU times in seconds, with
// milliseconds, and Peakmemory is in bytes; 0 if not known. Waittime is the time from the creation
// of the pod to its start, in seconds, 0.000 if it never started, and Endtime in seconds since
// 1970; both with milliseconds. These columns are stable; others may be appended. Pure.
#pragma once

#include "client/inputs/inputs.hpp"
#include "client/terminal/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::cli {

std::string joblog_header();

class Joblog {
 public:
  explicit Joblog(const Json& job);
  // Ends with a line break. `attempt`: an item of the history.
  std::string line(const Json& attempt);

 private:
  std::string command_of(int64_t index) const;

  const JobInputs inputs_;
  std::vector<std::string> words_;  // of the first container
  int64_t lines_ = 0;
};

}  // namespace muster::cli
