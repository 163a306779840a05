// StartSettings: a job's process settings (core/spec/fields/process_settings.hpp), made ready for a
// child that may only make system calls, and applied by it.
//
// Invariant: neither needs privileges: a soft limit is lowered to the hard one, and niceness
// only rises.
#pragma once

#include "core/spec/fields/process_settings.hpp"

#include <cstddef>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

class StartSettings {
 public:
  // `mask`: the umask if the settings have none. `fresh`: begins its files anew, unless the
  // settings say otherwise.
  StartSettings(const core::ProcessSettings& settings, mode_t mask, bool fresh);
  // In the child, after its setsid().
  void apply() const;
  // A file that could not be opened.
  struct Refused {
    const char* file = nullptr;    // null: all is well
    int error = 0;                 // an errno; 0: `why` says it
    const char* why = nullptr;     // null: the error says it
    const char* advice = nullptr;  // what would be right; null: the error says it
  };
  // In the child, once it has its user and privileges: opens the job's files as its output. Links
  // of other users lead to none. It waits for no reader of a FIFO. `why` is in `text`, which lives
  // on.
  Refused redirect(char* text, size_t size) const;
  // In the child, right before its exec, when it can no longer be refused: empties files that begin
  // anew.
  void begin_files() const;

 private:
  static const char* way_out(int error);

  struct SoftLimit {
    int resource;
    rlim_t value;
  };
  const mode_t mask_;
  const int nice_;
  std::vector<SoftLimit> limits_;
  const std::string out_, err_;  // empty: the log
  const bool truncate_;
  const bool joined_;
};

}  // namespace muster::keeper
