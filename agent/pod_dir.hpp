// PodDir: what a pod is given: names, environment, command line, directory.
//
// The environment is small and ordered; a later one of the same name wins: what a process needs to
// find its way (PATH, HOME, …; inherited from the agent), HOSTNAME and MUSTER_*, the devices it may
// use, the template's own, and JOB_COMPLETION_INDEX last, if the container has none itself. $(VAR)
// is replaced as by Kubernetes (job-semantics 1.4): it sees MUSTER_* and the container's variables,
// in a variable's value only the ones before it; what is inherited is not seen, so that a shell's
// $(HOME) stays as it was written.
//
// What a pod is given is bounded as exec bounds it: one string, and all of them together. Expansion
// stops at the bound, for variables that double each other would fill the memory before anything is
// refused.
//
// Pure, but for NodeFacts::of_this_process.
#pragma once

#include "agent/pod_template.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// The same for each pod of this agent.
struct NodeFacts {
  std::string node_name;
  std::string start_dir;               // the agent's own directory
  std::vector<std::string> inherited;  // "NAME=value"

  static NodeFacts of_this_process(std::string node_name);
};

struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value", each name once
  std::string cwd;               // absolute
};

inline constexpr size_t kStringMax = 128 << 10;  // of "NAME=value" or a word, as MAX_ARG_STRLEN
inline constexpr size_t kStringsMax = 2 << 20;   // of all, with their pointers, as ARG_MAX

// Text with each $(NAME) replaced by find(NAME); what find does not know (null) stays as it was
// written, and $$ is $. nullopt: it would be longer than `max`.
std::optional<std::string> expand(
    std::string_view text, const std::function<const std::string*(const std::string& name)>& find,
    size_t max = kStringMax);

// `devices`: those that the container gets. `invalid` names what cannot be had: a fieldRef that
// muster does not know, no command at all, a variable or word that is too long.
Result<Command> command_of(const PodTemplate& job, const core::Container& container, PodId pod,
                           const NodeFacts& node, const core::node::DeviceMap& devices = {});

}  // namespace muster::agent
