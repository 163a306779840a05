// Command: the names, environment, command line and directory of a pod's process. Pure.
//
// The environment is small and ordered; of two variables with the same name the later wins: PATH,
// HOME and the like (inherited from the agent), HOSTNAME and MUSTER_*, the devices it may use, the
// template's own variables, and JOB_COMPLETION_INDEX last, unless the container sets it. $(VAR) is
// expanded as in Kubernetes (job-semantics 1.4): it sees MUSTER_*, the device variables and the
// container's own, in a variable's value only those before it. It does not see inherited variables,
// so a shell's $(HOME) stays as written.
//
// Sizes are limited as in exec: each string, and all of them together. Expansion stops at the
// limit, because variables that double each other would exhaust memory before they are refused.
#pragma once

#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/node/pod_template.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core::node {

// What is the same for all pods of a node.
struct NodeFacts {
  std::string node_name;
  std::string start_dir;               // where relative directories begin
  std::vector<std::string> inherited;  // "NAME=value"
};

struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value", each name once
  std::string cwd;               // absolute
};

inline constexpr size_t kStringMax = 128 << 10;  // one "NAME=value" or word, like MAX_ARG_STRLEN
inline constexpr size_t kStringsMax = 2 << 20;   // all of them with their pointers, like ARG_MAX

// Replaces each $(NAME) by find(NAME), and $$ by $. A name that find does not know stays as
// written. nullopt: the result would be longer than `max`.
std::optional<std::string> expand(
    std::string_view text,
    const std::function<std::optional<std::string_view>(const std::string& name)>& find,
    size_t max = kStringMax);

// `devices`: those that the container gets. `invalid` names the cause: a fieldRef that muster does
// not know, no command, a variable or word that is too long or exceeds the total.
Result<Command> command_of(const PodTemplate& job, const Container& container, PodId pod,
                           const NodeFacts& node, const DeviceMap& devices = {});

// The same, prepared for many pods of one template: most variables are equal in all of them.
class CommandPattern {
 public:
  // Absent where command_of() must decide for each pod: a container without devices that has no
  // command, comes close to the longest command, or contains control characters.
  static std::optional<CommandPattern> of(const PodTemplate& job, const Container& container,
                                          const NodeFacts& node);
  Command command(const PodTemplate& job, PodId pod) const;

 private:
  struct Text {
    std::string text;
    bool holes;
  };
  std::vector<Text> argv_, env_;
  std::string cwd_;
};

}  // namespace muster::core::node
