// RunIdentity: which job a --data-dir of `muster run` belongs to. D/run.json holds {"manifest": …,
// "nameGiven": bool, "slots": N}.
//
// It is written before the job is created, so after a crash in between the next run creates the
// job.
#pragma once

#include "base/result.hpp"
#include "client/inputs/inputs.hpp"
#include "client/settings/submitter.hpp"
#include "client/terminal/json.hpp"

#include <string>

namespace muster::cli {

struct RunIdentity {
  Json manifest;
  bool name_given = true;  // false: generated from the command and random characters
  // From the shell in which the command was typed. Not part of the identity: the next run may come
  // from another shell, and the job keeps what it was created with.
  Variables environment{};
  std::string dir{};
  core::ProcessSettings process{};
  InputsFile inputs{};  // to be written into the directory
  // Not part of it either; a later run without --slots uses the number of the first.
  int slots = 0;
};

// What to run in this directory: `wanted`, with the generated name of an earlier run there if
// neither run was given a name. conflict: the directory holds another job. invalid: run.json is
// damaged.
Result<RunIdentity> claim(const std::string& dir, RunIdentity wanted);

// The run that this directory belongs to: its manifest, whether its name was given, its slots.
// not_found: it belongs to no run. invalid: run.json is damaged.
Result<RunIdentity> kept_run(const std::string& dir);

}  // namespace muster::cli
