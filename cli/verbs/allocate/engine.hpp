// Engine: how to ask a batch system for allocations, by its own commands. Makes command lines and
// reads their output; allocator.hpp runs them. Pure.
//
// All allocations of a pool have one job name, muster-POOL, by which they are found again. Words
// that a user gave are passed on as words; nothing of them is ever part of a shell's text unquoted.
#pragma once

#include "base/result.hpp"
#include "cli/verbs/allocate/pool.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli::allocate {

// What an allocation is to be.
struct Request {
  std::string pool;
  Millis time_ms = 0;
  std::vector<std::string> options;  // of the batch system's command, as the user gave them
  std::string dir;                   // for logs and tokens; the nodes see it, too
  std::string executable;            // muster, on the nodes
  std::string coordinator;           // its address for agents
  bool with_token = false;           // the agent joins with DIR/NODE.token
  std::string work_base;             // directory on the nodes for work-dirs; empty: $TMPDIR or /tmp
  std::vector<std::string> agent_flags;  // "--slots", "4"
  bool with_slots = false;               // --slots is among them
};

std::string job_name(const std::string& pool);

struct Command {
  std::vector<std::string> words;
  std::string input{};
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual Command submit(const Request& request) const = 0;
  // The id in its output. invalid: there is none.
  virtual Result<std::string> submitted(const std::string& output) const = 0;
  // Lists the user's allocations of this pool; of those that have ended, the latest.
  virtual Command list(const std::string& pool) const = 0;
  virtual Result<std::vector<Allocation>> listed(const std::string& output) const = 0;
  // Tells the script of a running allocation to leave (SIGTERM).
  virtual Command leave(const std::string& id) const = 0;
  virtual Command end(const std::string& id) const = 0;
  // The user's options that this command sets itself; shown in an error.
  virtual std::vector<std::string> own_options() const = 0;
};

// What of `options` may not be given: "--time"; empty: nothing. Knows -t5, -t 5, --time=5,
// --time 5.
std::string option_of_ours(const std::vector<std::string>& options,
                           const std::vector<std::string>& ours);

// The cells of a line, between bars.
std::vector<std::string> cells_of(std::string_view line);

// What a batch script needs to know of its engine, as expressions for a shell.
struct ScriptWords {
  std::string id;         // of the allocation, as in the name of its node
  std::string cpus;       // on this node; empty: the agent finds out
  std::string memory_mi;  // likewise
  std::string end;        // set if the agent finds the end of the allocation by itself
};

// The batch script: runs the agent in a work-dir of its own, passes SIGTERM on to it, and removes
// the work-dir when the agent has left in order.
std::string script_of(const Request& request, const ScriptWords& words);

}  // namespace muster::cli::allocate
