// Reach: how a drill reaches the nodes of a running cluster to inject faults.
//
// A node whose agent runs on this machine is reached directly, any other node through the
// operator's --on-node command, such as `ssh {node} {}`. Either way, `muster drill hand` does the
// work there (hand.hpp).
#pragma once

#include "base/text/json.hpp"
#include "drill/process/command.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::cli::drill {

// The operator's commands, for /bin/sh; empty: not given.
struct Hooks {
  std::string on_node;    // {node}: its name; {}: the command to run there
  std::string start;      // {node}: runs on the node and restarts its agent
  std::string switch_to;  // {binary}: makes a machine's daemons run this binary from now on
  std::string restore;    // {backup}: restores the coordinator's state and starts it
};
// The error names the missing placeholder and its flag.
Status check(const Hooks& hooks);

// The template with each placeholder replaced. Values may contain only letters, digits and
// ._/:=,@+-, so that no shell on the way interprets them; see plain().
std::string filled(std::string text, const std::string& placeholder, const std::string& value);
bool plain(const std::string& word);

struct DrillNode {
  std::string name, uid;
  bool here = false;  // its agent runs on this machine
  Json seen;          // the answer to the last `look`
};

class Reach {
 public:
  Reach(std::string executable, Hooks hooks, Command::GoOn go_on)
      : executable_(std::move(executable)), hooks_(std::move(hooks)), go_on_(std::move(go_on)) {}

  const Hooks& hooks() const { return hooks_; }
  // Finds the node's agent, here or through --on-node. unavailable: says what is needed.
  Status find(DrillNode& node) const;
  // Runs a verb of the hand to completion; unavailable: says why it failed.
  Result<Json> ask(const DrillNode& node, const std::string& verb,
                   const std::string& more = "") const;
  // Starts a fault.
  Result<Command> begin(const DrillNode& node, const std::string& verb) const;
  // The next line of a fault. unavailable: it failed or printed nothing in time. `stubborn`: even
  // if the user interrupts.
  Result<Json> answer(Command& command, Millis patience_ms, bool stubborn) const;
  // Runs a command of the operator on the node, or on this machine if there is none.
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
