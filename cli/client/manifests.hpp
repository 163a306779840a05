// Manifests: the documents of a file, and the manifest that `muster run -n N -- CMD` builds.
#pragma once

#include "base/result.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/submitter.hpp"

#include <functional>
#include <string>
#include <vector>

namespace muster::cli {

struct Document {
  // As sent to the API; repeated keys are still there, so that the API can name them.
  std::string json;
  std::string kind, name, ns;
};

// All documents of a file ("-": stdin), and the items of its lists: jobs, config maps and
// namespaces. An object that came from a coordinator (`muster get -o yaml`) is stripped of what the
// coordinator has set. invalid, with file, line and column: unreadable, not YAML, no document, or a
// document of another kind.
Result<std::vector<Document>> read_manifests(const std::string& path);
Result<std::vector<Document>> parse_manifests(const std::string& text, const std::string& path);

struct CommandJob {
  int32_t completions = 0;
  int32_t parallelism = 0;
  std::string name;     // empty: the command and a few random characters
  int32_t retries = 0;  // per index
  std::vector<std::string> command;
  Variables environment;
  std::string dir;  // empty: not set in the manifest
  // The command as the manifest has it, with references to inputs; empty: as it was typed.
  std::vector<std::string> words{};
};

// The command runs as it was typed: nothing in it or in its environment is expanded. If it cannot
// be started, the job fails. `random(n)` returns a number below n.
Json command_manifest(const CommandJob& job, const std::function<uint32_t(uint32_t)>& random);

// Adds the environment and directory of the shell to a command_manifest(). Values that the manifest
// already has take precedence.
Json with_surroundings(Json manifest, const Variables& environment, const std::string& dir);

}  // namespace muster::cli
