// StartSettings: a job's process settings (core/spec/fields/process_settings.hpp), made ready for a
// child that may only make system calls, and applied by it.
//
// Invariant: apply() needs no privileges: a soft limit is lowered to the hard one, and niceness
// only rises.
#pragma once

#include "core/spec/fields/process_settings.hpp"

#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

class StartSettings {
 public:
  // `mask`: the umask if the settings have none.
  StartSettings(const core::ProcessSettings& settings, mode_t mask);
  // In the child, after its setsid().
  void apply() const;

 private:
  struct SoftLimit {
    int resource;
    rlim_t value;
  };
  const mode_t mask_;
  const int nice_;
  std::vector<SoftLimit> limits_;
};

}  // namespace muster::keeper
