// Manifests: the documents of a file, and the one that `muster run -n N -- CMD` builds.
#pragma once

#include "base/result.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/submitter.hpp"

#include <functional>
#include <string>
#include <vector>

namespace muster::cli {

struct Document {
  std::string
      json;  // as it goes to the API; repeated keys are still there, so that the API can name them
  std::string kind, name, ns;
};

// All documents of a file ("-": stdin), and the items of its lists. Of a job that a coordinator
// told of (`muster get -o yaml`) what the coordinator has set is left out. invalid, with file, line
// and column: cannot be read, no YAML, none in it, or a document that is no batch/v1 Job.
Result<std::vector<Document>> read_manifests(const std::string& path);
Result<std::vector<Document>> parse_manifests(const std::string& text, const std::string& path);

struct CommandJob {
  int32_t completions = 0;
  int32_t parallelism = 0;
  std::string name;     // empty: of the command and a few random characters
  int32_t retries = 0;  // of each index
  std::vector<std::string> command;
  Variables environment;
  std::string dir;  // empty: the node's own
};

// The command runs as it was typed: nothing in it, nor in its environment, is expanded. It ends the
// job when it cannot be started. `random` gives numbers below its argument.
Json command_manifest(const CommandJob& job, const std::function<uint32_t(uint32_t)>& random);

// What a command_manifest() has beside its own environment and directory: those of the shell that
// it was typed in. Where it says something itself, it wins.
Json with_surroundings(Json manifest, const Variables& environment, const std::string& dir);

}  // namespace muster::cli
