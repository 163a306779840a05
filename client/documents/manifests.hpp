// Manifests: the documents in files, and the manifest that `muster run -n N -- CMD` builds.
#pragma once

#include "base/result.hpp"
#include "client/documents/document.hpp"
#include "client/settings/submitter.hpp"
#include "client/terminal/json.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

// The usable documents in files, in order, and what is wrong with the others.
struct Manifests {
  std::vector<Document> documents;
  // `invalid`: one violation for each file or document that cannot be used, with its place as its
  // path ("job.yaml:3:7").
  std::optional<Error> error;
};

// All documents in files ("-": stdin; a directory: its .yaml, .yml and .json files by name) and the
// items of their lists: jobs, config maps and namespaces. An object that came from a coordinator
// (`muster get -o yaml`) is stripped of what the coordinator has set.
Manifests read_manifests(const std::vector<std::string>& files);
Manifests parse_manifests(const std::string& text, const std::string& shown_file);

// A valid name for a job that people call `text`, which may already be one.
std::string name_from(const std::string& text);

// Checks the name of a job of so many indexes, the value of --name. invalid: says which names are
// valid, and suggests one.
Status check_job_name(const std::string& name, int64_t completions);

// What the site does to a pod of a command (a lost or drained node, a preemption) is no failure of
// its index, up to this many times unless the user says otherwise.
inline constexpr int32_t kDisruptionsMax = 5;

struct CommandJob {
  int32_t completions = 0;
  int32_t parallelism = 0;
  std::string name;     // empty: the program, or its script, and a few random characters
  int32_t retries = 0;  // per index
  std::vector<std::string> command;
  Variables environment;
  std::string dir;  // empty: not set in the manifest
  // The command as the manifest has it, with references to inputs; empty: as it was typed.
  std::vector<std::string> words{};
  int32_t disruptions_max = kDisruptionsMax;
};

// The command runs as it was typed: nothing in it or in its environment is expanded. If it cannot
// be started, the job fails. `random(n)` returns a number below n.
Json command_manifest(const CommandJob& job, const std::function<uint32_t(uint32_t)>& random);

// Adds the environment and directory of the shell to a command_manifest(). Values that the manifest
// already has take precedence.
Json with_surroundings(Json manifest, const Variables& environment, const std::string& dir,
                       const core::ProcessSettings& process = {});

}  // namespace muster::cli
