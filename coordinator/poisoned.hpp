// Poisoned jobs: a job on which the coordinator crashed in three consecutive starts is set aside.
//
// The file DATA_DIR/crashes has a line for each start that went on to serve, and one for each crash
// on a job (base/last_words.hpp):
//
//   start <version>
//   aside <job>              one for each job that this start set aside
//   crash <job> <version>
//
// A job stays set aside until another version of muster serves, or the file is removed. Starts that
// ended in any other way, including by SIGKILL, break the streak. A start that is refused, and so
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

// Called when this version starts. From then on, a crash is noted in the file, if it exists.
CrashHistory begin_start(const std::string& data_dir, std::string_view version);
// Notes that it serves. If that fails, logs a warning, and crashes are no longer noted.
void note_start(const std::string& data_dir, std::string_view version, const CrashHistory& history);

}  // namespace muster::coordinator
