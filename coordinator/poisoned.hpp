// Poisoned jobs: a job at which the coordinator crashed in three starts in a row is set aside.
//
// The file DATA_DIR/crashes has a line for each start, and one for the job at which it crashed, if
// it crashed at one (base/last_words.hpp):
//
//   start <version>
//   aside <job>        one for each job that this start set aside
//   job <job>
//
// A job that is set aside stays so until another version of muster starts, or the file is removed.
// Starts that ended in any other way, also by SIGKILL, count for nothing.
#pragma once

#include "core/ids.hpp"

#include <set>
#include <string>
#include <string_view>

namespace muster::coordinator {

constexpr int kCrashesMax = 3;

// What the file says.
struct CrashHistory {
  std::set<JobId> aside;  // jobs to set aside in the next start
  std::string kept;       // the lines that still matter
};
CrashHistory read_crashes(std::string_view text, std::string_view version);

// Begins a start: which jobs to set aside. From now on, a crash is noted in the file; if that can't
// be written, a warning is logged.
std::set<JobId> begin_start(const std::string& data_dir, std::string_view version);

}  // namespace muster::coordinator
