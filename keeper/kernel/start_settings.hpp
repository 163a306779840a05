// StartSettings: a job's process settings (core/spec/fields/process_settings.hpp), made ready for a
// child that may only make system calls, and applied by it.
//
// Invariant: neither needs privileges: a soft limit is lowered to the hard one, and niceness
// only rises.
#pragma once

#include "core/spec/fields/process_settings.hpp"

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
  // In the child, once it has its user and privileges: opens the job's files as its output. The one
  // that cannot be opened, with errno; null: all is well. It waits for no reader of a FIFO.
  const char* redirect() const;
  // What would be right after such an errno; null: the error says it.
  static const char* way_out(int error);
  // In the child, right before its exec, when it can no longer be refused: empties files that begin
  // anew.
  void begin_files() const;

 private:
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
