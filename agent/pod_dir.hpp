// PodDir: what a pod is given: names, environment, command line, directory.
//
// The environment is small and ordered; a later one of the same name wins: what a process needs to
// find its way (PATH, HOME, …; inherited from the agent), HOSTNAME and MUSTER_*, the template's
// own, and JOB_COMPLETION_INDEX last, if the container has none itself. $(VAR) is replaced as by
// Kubernetes (job-semantics 1.4): it sees MUSTER_* and the container's variables, in a variable's
// value only the ones before it; what is inherited is not seen, so that a shell's $(HOME) stays as
// it was written.
//
// Pure, but for NodeFacts::of_this_process.
#pragma once

#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// What all pods of a job have in common (wire::PodTemplate).
struct PodTemplate {
  JobId job = 0;
  int64_t generation = 0;
  std::string job_name;
  std::string job_uid;
  std::string ns;
  bool indexed = false;
  int32_t completions = -1;  // -1: absent
  int32_t parallelism = 0;
  Millis grace_ms = 0;
  std::vector<core::Container> containers;
  core::StringMap labels;
  core::StringMap annotations;
};
using PodTemplatePtr = std::shared_ptr<const PodTemplate>;

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

// Text with each $(NAME) replaced by find(NAME); what find does not know (null) stays as it was
// written, and $$ is $.
std::string expand(std::string_view text,
                   const std::function<const std::string*(const std::string& name)>& find);

// `invalid` names what cannot be had: a fieldRef that muster does not know, no command at all.
Result<Command> command_of(const PodTemplate& job, const core::Container& container, PodId pod,
                           const NodeFacts& node);

// What the keeper keeps beside a process, so that a restarted agent takes it back.
struct Note {
  Millis grace_ms = 0;
  std::string job_uid;
  std::string pod_name;
  std::string container;

  std::string text() const;
  // Of a damaged or unknown note the fields are empty.
  static Note parse(std::string_view text);
};

}  // namespace muster::agent
