// Reach: the nodes of a running cluster on which a drill may inject faults, and the way to them.
//
// A node whose agent runs on this machine is reached directly, another one through the operator's
// --on-node command, such as `ssh {node} {}`. Either way `muster drill hand` does the work there
// (hand.hpp).
#pragma once

#include "cli/drill/command.hpp"
#include "text/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::cli::drill {

// The operator's commands, for /bin/sh; empty: not given.
struct Hooks {
  std::string on_node;    // {node}: its name; {}: the command that is to run there
  std::string start;      // {node}: starts the agent of a node again, run there
  std::string switch_to;  // {binary}: makes the daemons of a machine start it from now on
  std::string restore;    // {backup}: puts the coordinator's state back, and starts it
};
// Which placeholder is missing, and where.
Status check(const Hooks& hooks);

// The template with each placeholder replaced. Values may hold letters, digits and ._/:=,@+- only,
// so that no shell on the way takes them for anything else; see plain().
std::string filled(std::string text, const std::string& placeholder, const std::string& value);
bool plain(const std::string& word);

struct DrillNode {
  std::string name, uid;
  bool here = false;  // its agent runs on this machine
  Json seen;          // what the last look() said
};

class Reach {
 public:
  Reach(std::string executable, Hooks hooks, Command::GoOn go_on)
      : executable_(std::move(executable)), hooks_(std::move(hooks)), go_on_(std::move(go_on)) {}

  const Hooks& hooks() const { return hooks_; }
  // Finds the node's agent: here, or by --on-node. unavailable: says what would be needed.
  Status find(DrillNode& node) const;
  // Runs a verb of the hand to its end; unavailable: it failed, and why.
  Result<Json> ask(const DrillNode& node, const std::string& verb,
                   const std::string& more = "") const;
  // Starts a fault.
  Result<Command> begin(const DrillNode& node, const std::string& verb) const;
  // The next line of a fault. unavailable: it failed, or said nothing in time. `stubborn`: also
  // while the user interrupts.
  Result<Json> answer(Command& command, Millis patience_ms, bool stubborn) const;
  // Runs a command of the operator's on the node, or, without one, on this machine.
  Status run(const DrillNode* node, const std::string& command, Millis patience_ms,
             bool stubborn = false) const;

 private:
  std::vector<std::string> words(const DrillNode& node, const std::string& command) const;
  std::string hand(const DrillNode& node, const std::string& verb, const std::string& more) const;

  const std::string executable_;
  const Hooks hooks_;
  const Command::GoOn go_on_;
};

}  // namespace muster::cli::drill
