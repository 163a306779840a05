// Manifests: the documents of a file, and the one that `muster run -n N -- CMD` builds.
#pragma once

#include "base/result.hpp"
#include "cli/json.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct Document {
  std::string
      json;  // as it goes to the API; repeated keys are still there, so that the API can name them
  std::string kind, name, ns;
};

// All documents of a file ("-": stdin). invalid, with file, line and column: cannot be read, no
// YAML, none in it, or a document that is no batch/v1 Job.
Result<std::vector<Document>> read_manifests(const std::string& path);
Result<std::vector<Document>> parse_manifests(const std::string& text, const std::string& path);

struct CommandJob {
  int32_t completions = 0;
  int32_t parallelism = 0;
  std::string name;  // empty: of the command and a few random characters
  std::optional<int32_t> retries;
  std::vector<std::string> command;
};

// `random` gives numbers below its argument.
Json command_manifest(const CommandJob& job, const std::function<uint32_t(uint32_t)>& random);

}  // namespace muster::cli
