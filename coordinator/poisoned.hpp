// Poisoned jobs: a job at which the coordinator crashed in three starts in a row is set aside.
//
// The file DATA_DIR/crashes has a line for each start that came to serve, and one for each crash at
// a job (base/last_words.hpp):
//
//   start <version>
//   aside <job>              one for each job that this start set aside
//   crash <job> <version>
//
// A job that is set aside stays so until another version of muster serves, or the file is removed.
// Starts that ended in any other way, also by SIGKILL, break the row. One that is refused, and so
// never serves, writes nothing.
#pragma once

#include "core/ids.hpp"

#include <set>
#include <string>
#include <string_view>

namespace muster::coordinator {

constexpr int kCrashesMax = 3;

// What the file says.
struct CrashHistory {
  std::set<JobId> aside;  // jobs to set aside in this start
  std::string kept;       // the lines that still matter
};
CrashHistory read_crashes(std::string_view text, std::string_view version);

// For a start of this version. From now on, a crash is noted in the file, if there is one.
CrashHistory begin_start(const std::string& data_dir, std::string_view version);
// It serves: notes that. If that fails, a warning is logged, and crashes are no longer noted.
void note_start(const std::string& data_dir, std::string_view version, const CrashHistory& history);

}  // namespace muster::coordinator
