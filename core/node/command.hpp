// Command: the names, environment, command line and directory of a pod's process. Pure.
//
// The environment is small and ordered; the last of several variables with the same name wins:
// PATH, HOME and the like (inherited from the agent), HOSTNAME and MUSTER_*, the variables of an
// MPI job (mpi.hpp), the devices it may use, the template's own variables, and finally
// JOB_COMPLETION_INDEX, unless the container sets it. $(VAR) is expanded as in Kubernetes
// (job-semantics 1.4): it sees MUSTER_*, the device variables and the container's own, and within a
// variable's value only those before it. It does not see inherited variables, so a shell's $(HOME)
// stays as written.
//
// The index's input (core/spec/values/inputs.hpp) is MUSTER_INPUT. The command line and variables
// may also refer to parts of it that are not variables.
//
// The values of config maps are in the template (PodTemplate::configs); a container's envFrom comes
// before its env.
//
// Secrets are not resolved here: only the process that becomes the pod's reads them.
//
// Sizes are limited as by exec: each string, and all of them together. Expansion stops at the
// limit, because variables that double each other would exhaust memory before they are refused.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/node/mpi.hpp"
#include "core/node/pod_template.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::core::node {

// What is the same for all pods of a node.
struct NodeFacts {
  std::string node_name;
  std::string start_dir;               // where relative directories begin
  std::vector<std::string> inherited;  // "NAME=value"
  std::string home;                    // of the user that pods run as; holds their secrets
  std::string scratch{};               // parent of the pods' directories; empty: none are made
  std::string memory{};                // the same, in memory
};

// A variable whose value is read when the process starts (valueFrom.secretKeyRef).
struct SecretFile {
  std::string variable;   // name
  std::string path;       // absolute
  bool optional = false;  // without the file there is no variable
  bool operator==(const SecretFile&) const = default;
};

struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> env;       // "NAME=value", each name once
  std::string cwd;                    // absolute
  std::vector<SecretFile> secrets{};  // variables that are not in `env`
  ProcessSettings process{};          // if it has files, with them instead of patterns; else empty
  bool session = false;               // it joins a running container
  std::string words{};  // from a pattern: argv and env by write_words(), in place of those members
};

// What it starts with: the template's settings, with the command's files.
ProcessSettings settings_of(const PodTemplate& job, const Command& command);

// For the keeper: count:u32 word:text* count:u32 variable:text*.
void write_words(Writer& out, const std::vector<std::string>& argv,
                 const std::vector<std::string>& env);

inline constexpr size_t kStringMax = 128 << 10;  // one "NAME=value" or word, like MAX_ARG_STRLEN
inline constexpr size_t kStringsMax = 2 << 20;   // all of them with their pointers, like ARG_MAX

// Adds, without numbers, the GPUs that this node has (`declared`: its resources) and the container
// does not get, so that its programs see none of them.
void hide_others(DeviceMap& devices, const std::vector<std::string>& declared);

// `devices`: the container's; a resource without numbers is there and not to be seen. `mpi`: null
// unless the job is an MPI job. `inputs`: the contents of the job's inputs_file; null unless it has
// one. `invalid` names the cause: a fieldRef that muster does not know, no command, no input for
// this index, a missing config map or key, a variable or word that is too long or exceeds the
// total.
Result<Command> command_of(const PodTemplate& job, const Container& container, PodId pod,
                           const NodeFacts& node, const DeviceMap& devices = {},
                           const MpiFacts* mpi = nullptr, const InputTable* inputs = nullptr);
// The same for a command that joins the container, whose size is nobody's fault but its own.
// `words` are not expanded.
Result<Command> session_command(const PodTemplate& job, const Container& container, PodId pod,
                                const NodeFacts& node, const DeviceMap& devices,
                                const MpiFacts* mpi, std::vector<std::string> words,
                                const InputTable* inputs = nullptr);
// A program of the site that runs before or after the pod (docs/decisions/0089-hooks.md), with what
// the pod's processes know of it and of its job, and with nothing that the job has chosen.
Command hook_command(const PodTemplate& job, PodId pod, const NodeFacts& node,
                     const std::string& program);
// What a pod whose command is refused ends with: kExitOfIndex where its input is too long, as those
// of other indexes may not be, else 126.
int32_t exit_code_of(const PodTemplate& job, const Error& refusal);

// The same, prepared for many pods of one template, since most variables are equal in all of them.
class CommandPattern {
 public:
  // Absent where command_of() must be used for each pod: if the pod has an input, volumes or files
  // for its output, or if the command is missing, close to the size limits, or contains control
  // characters. Not for containers with devices: `devices` are those that they must not see.
  static std::optional<CommandPattern> of(const PodTemplate& job, const Container& container,
                                          const NodeFacts& node, const DeviceMap& devices = {});
  Command command(const PodTemplate& job, PodId pod) const;

 private:
  struct Piece {
    std::string bytes;  // output of write_words(), or one text with holes
    bool holes;
  };
  std::vector<Piece> pieces_;
  std::string cwd_;
  std::vector<SecretFile> secrets_;
};

}  // namespace muster::core::node
