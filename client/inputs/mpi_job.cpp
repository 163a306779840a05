#include "client/inputs/mpi_job.hpp"

#include "client/inputs/resources.hpp"
#include "core/spec/values/expansion.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace muster::cli {

using core::unexpanded;

namespace {

// By its path, since the PATH that pods get from the shell does not include it.
constexpr const char* kEntry = "$(MUSTER_RUN_DIR)/bin/muster-mpi-entry";
// The launcher hands its input to rank 0. "$0" is the file.
constexpr const char* kReadStdin = "exec \"$@\" <\"$0\"";
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

core::MpiKind mpi_kind(std::string_view word) {
  for (const core::MpiKind kind : {core::MpiKind::openmpi, core::MpiKind::mpich})
    if (word == word_of(kind)) return kind;
  return core::MpiKind::any;
}

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

Status settle_cpus(MpiWishes& wishes, ResourceWishes& resources) {
  if (wishes.cpus_per_rank > 0 && !resources.cpus.empty())
    return invalid("--cpus-per-rank and --cpus are mutually exclusive: --cpus is for each host");
  if (wishes.cpus_per_rank > 0 && wishes.oversubscribe)
    return invalid("--cpus-per-rank and --oversubscribe are mutually exclusive");
  wishes.cpus_by_default = resources.cpus.empty() && wishes.cpus_per_rank == 0;
  if (resources.cpus.empty() && !wishes.oversubscribe)
    resources.cpus =
        std::to_string(int64_t{wishes.slots} * std::max<uint32_t>(1, wishes.cpus_per_rank));
  return Nothing{};
}

int64_t threads_of_rank(const MpiWishes& wishes, const ResourceWishes& resources) {
  const int64_t threads = wishes.cpus_by_default ? 0 : threads_of(resources);
  return threads > 0 ? std::max<int64_t>(1, threads / wishes.slots) : 0;
}

Status check_launcher(const MpiWishes& wishes, const FoundLauncher& launcher) {
  if (wishes.batch) return Nothing{};
  const char* const flag = !wishes.mca.empty()       ? "--mca"
                           : wishes.tag_output       ? "--tag-output"
                           : !wishes.bind_to.empty() ? "--bind-to"
                           : !wishes.map_by.empty()  ? "--map-by"
                           : wishes.oversubscribe    ? "--oversubscribe"
                                                     : nullptr;
  if (flag == nullptr) return Nothing{};
  if (launcher.kind == MpiLauncher::unknown)
    return invalid(std::string(flag) +
                   ": cannot identify this machine's mpirun; specify --mpi openmpi or --mpi mpich");
  if (!wishes.mca.empty() && launcher.kind != MpiLauncher::openmpi)
    return invalid("--mca is a flag of Open MPI, and " + launcher.program +
                   " is Hydra; specify --mpi openmpi");
  return Nothing{};
}

Json mpi_manifest(Json manifest, const MpiWishes& wishes, const FoundLauncher& launcher) {
  const bool open = launcher.kind == MpiLauncher::openmpi;
  const bool hydra = launcher.kind == MpiLauncher::hydra;
  Json words = {kEntry, "--"};
  if (!wishes.stdin_path.empty())
    for (const char* word : {"sh", "-c", kReadStdin}) words.push_back(word);
  if (!wishes.stdin_path.empty()) words.push_back(unexpanded(wishes.stdin_path));
  if (!wishes.batch) words.push_back(launcher.program);
  if (wishes.ranks > 0) {
    words.push_back("-n");
    words.push_back(std::to_string(wishes.ranks));
  }
  const auto add = [&words](const char* flag, const std::string& value) {
    if (value.empty()) return;
    words.push_back(flag);
    words.push_back(unexpanded(value));
  };
  add(open ? "--bind-to" : "-bind-to", wishes.bind_to);
  add(open ? "--map-by" : "-map-by", wishes.map_by);
  for (size_t i = 0; i + 1 < wishes.mca.size(); i += 2) {
    words.push_back("--mca");
    words.push_back(unexpanded(wishes.mca[i]));
    words.push_back(unexpanded(wishes.mca[i + 1]));
  }
  if (wishes.oversubscribe && open) words.push_back("--oversubscribe");
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
