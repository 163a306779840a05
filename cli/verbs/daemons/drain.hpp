// Draining a node, for muster drain and muster reboot.
#pragma once

#include "cli/verbs/verb.hpp"
#include "client/connect/http.hpp"
#include "client/follow/signals.hpp"

#include <optional>
#include <string>

namespace muster::cli {

struct DrainOptions {
  Target target;
  std::string node;
  bool now = false;                   // evict at once
  std::optional<Millis> deadline_ms;  // evict after this time
  std::string reason;                 // may be empty
};

int execute(const DrainOptions& options);

// Cordons the node and waits until it has no pods. Returns an exit code; has said why, unless it is
// kDone. `resume`: the command that goes on after an interruption.
int drain(ApiClient& client, const DrainOptions& options, Signals& signals,
          const std::string& resume);

// What undoes the cordon, and what goes on (empty: nothing), below an error.
std::string ways_on(const std::string& node, const std::string& resume);

}  // namespace muster::cli
