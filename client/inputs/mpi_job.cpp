#include "client/inputs/mpi_job.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace muster::cli {
namespace {

// By its path, since the PATH that pods get from the shell does not include it.
constexpr const char* kEntry = "$(MUSTER_RUN_DIR)/bin/muster-mpi-entry";
constexpr size_t kVersionMax = 4'096;  // bytes

const char* word_of(core::MpiKind kind) {
  switch (kind) {
    case core::MpiKind::openmpi:
      return "openmpi";
    case core::MpiKind::mpich:
      return "mpich";
    case core::MpiKind::any:
      break;
  }
  return "auto";
}

bool is_on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (access((std::string(rest.substr(0, colon)) + "/" + program).c_str(), X_OK) == 0)
      return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

std::string version_of_mpirun() {
  FILE* const pipe = popen("exec mpirun --version </dev/null 2>/dev/null", "re");
  if (pipe == nullptr) return "";
  std::array<char, kVersionMax> text{};
  const size_t size = fread(text.data(), 1, text.size(), pipe);
  pclose(pipe);
  return {text.data(), size};
}

}  // namespace

MpiLauncher launcher_of(std::string_view version) {
  if (version.find("Open MPI") != std::string_view::npos ||
      version.find("OpenRTE") != std::string_view::npos)
    return MpiLauncher::openmpi;
  if (version.find("HYDRA") != std::string_view::npos ||
      version.find("Intel(R) MPI") != std::string_view::npos)
    return MpiLauncher::hydra;
  return MpiLauncher::unknown;
}

FoundLauncher find_launcher(core::MpiKind kind) {
  // If several MPIs are installed, `mpirun` belongs to only one of them.
  switch (kind) {
    case core::MpiKind::openmpi:
      return {is_on_path("mpirun.openmpi") ? "mpirun.openmpi" : "mpirun", MpiLauncher::openmpi};
    case core::MpiKind::mpich:
      return {is_on_path("mpiexec.hydra") ? "mpiexec.hydra" : "mpirun", MpiLauncher::hydra};
    case core::MpiKind::any:
      break;
  }
  return {"mpirun", launcher_of(version_of_mpirun())};
}

std::string mpi_annotation(const MpiWishes& wishes) {
  return std::string(word_of(wishes.kind)) + ",slots=" + std::to_string(wishes.slots);
}

Json mpi_manifest(Json manifest, const MpiWishes& wishes, const FoundLauncher& launcher) {
  const bool open = launcher.kind == MpiLauncher::openmpi;
  const bool hydra = launcher.kind == MpiLauncher::hydra;
  Json words = {kEntry, "--", launcher.program};
  if (wishes.ranks > 0) {
    words.push_back("-n");
    words.push_back(std::to_string(wishes.ranks));
  }
  if (wishes.tag_output && open) words.push_back("--tag-output");
  if (wishes.tag_output && hydra) words.push_back("-prepend-rank");
  for (const std::string& name : wishes.passed) {
    if (open) {
      words.push_back("-x");
      words.push_back(name);
    } else if (hydra) {
      words.push_back("-genv");
      words.push_back(name);
      words.push_back("$(" + name + ")");
    }
  }
  Json& spec = manifest["spec"];
  Json& command = spec["template"]["spec"]["containers"][0]["command"];
  for (const Json& word : command) words.push_back(word);
  command = std::move(words);
  manifest["metadata"]["annotations"][std::string(core::kMpiKey)] = mpi_annotation(wishes);
  // The job succeeds with its leader and fails with any index.
  spec["successPolicy"] = {{"rules", Json::array({{{"succeededIndexes", "0"}}})}};
  spec["maxFailedIndexes"] = 0;
  return manifest;
}

}  // namespace muster::cli
