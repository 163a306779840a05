// Which job a --data-dir of `muster run` belongs to: D/run.json, {"manifest": …, "nameGiven":
// bool}.
//
// Written before the job is created, so a crash in between only means that the next run creates it.
#pragma once

#include "base/result.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/submitter.hpp"

#include <string>

namespace muster::cli {

struct RunIdentity {
  Json manifest;
  bool name_given = true;  // false: the name was made of the command and chance
  // Of the shell that a command was typed in. No part of what a directory belongs to: the next run
  // may come from another shell, and the job keeps what it was created with.
  Variables environment{};
  std::string dir{};
};

// What to run in this directory: `wanted`, or, when it was begun there earlier, the same with the
// name that it got then. conflict: the directory holds another job.
Result<RunIdentity> claim(const std::string& dir, RunIdentity wanted);

}  // namespace muster::cli
