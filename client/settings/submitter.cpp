#include "client/settings/submitter.hpp"

#include "client/terminal/json.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/rlimits.hpp"

#include <algorithm>
#include <array>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

// Variables that each pod sets itself, and those that only make sense in the shell.
bool stays_here(std::string_view name) {
  static constexpr std::array kOwn = {std::string_view("HOSTNAME"), std::string_view("_"),
                                      std::string_view("JOB_COMPLETION_INDEX")};
  for (const std::string_view own : kOwn) {
    if (name == own) return true;
  }
  return name.starts_with("MUSTER_");
}

// Variables that a batch system, or the launcher that started us, sets for its own processes: a
// launcher that sees them assumes that it is one of those.
// `in_mpi`: this shell is itself a process of an MPI job.
bool is_of_launcher(std::string_view name, bool in_mpi) {
  static constexpr std::array kPrefixes = {std::string_view("SLURM_"), std::string_view("PBS_"),
                                           std::string_view("LSB_"),   std::string_view("SGE_"),
                                           std::string_view("PMI_"),   std::string_view("PMIX_"),
                                           std::string_view("OMPI_"),  std::string_view("HYDRA_")};
  static constexpr std::array kOfStart = {
      std::string_view("OMPI_MCA_plm"),          std::string_view("OMPI_MCA_ras"),
      std::string_view("OMPI_MCA_ess"),          std::string_view("OMPI_MCA_orte_"),
      std::string_view("OMPI_MCA_pmix"),         std::string_view("OMPI_MCA_routed"),
      std::string_view("PRTE_MCA_plm"),          std::string_view("PRTE_MCA_ras"),
      std::string_view("PRTE_MCA_prte_"),        std::string_view("I_MPI_HYDRA_BOOTSTRAP"),
      std::string_view("I_MPI_HYDRA_HOST_FILE"), std::string_view("I_MPI_HYDRA_IFACE")};
  // Root sets these to let Open MPI run as root.
  if (geteuid() == 0 &&
      (name == "OMPI_ALLOW_RUN_AS_ROOT" || name == "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"))
    return false;
  const auto begins = [name](std::string_view prefix) { return name.starts_with(prefix); };
  // Settings that a user makes, unless they say how processes start, which would win over muster's.
  if (std::ranges::any_of(kOfStart, begins)) return true;
  if (name.starts_with("OMPI_MCA_")) return in_mpi;
  return std::ranges::any_of(kPrefixes, begins);
}

// Variables that name GPUs.
bool names_devices(std::string_view name) {
  static constexpr std::array kDevices = {
      std::string_view("CUDA_VISIBLE_DEVICES"), std::string_view("NVIDIA_VISIBLE_DEVICES"),
      std::string_view("ROCR_VISIBLE_DEVICES"), std::string_view("HIP_VISIBLE_DEVICES"),
      std::string_view("GPU_DEVICE_ORDINAL")};
  return std::ranges::find(kDevices, name) != kDevices.end();
}

// Soft limits that say what a program expects. The others (memlock, nproc) say what a machine has
// to give.
constexpr const char* kShellLimits[] = {"as", "core", "cpu", "data", "fsize", "nofile", "stack"};

bool fits(const std::string& name, const std::string& value) {
  return core::env_name_errors(name).empty() && is_utf8(value);
}

}  // namespace

Result<Export> parse_export(const std::string& text) {
  if (text == "ALL") return Export{};
  if (text == "NONE") return Export{Export::What::none, {}};
  Export out{Export::What::names, {}};
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    const std::string name = text.substr(from, end - from);
    if (name.empty() || name.find('=') != std::string::npos)
      return invalid("`" + text + "`: must be ALL, NONE or NAME,NAME...; a value is set by --env");
    out.names.push_back(name);
    from = end + 1;
  }
  return out;
}

Result<Variables> exported(const char* const* environ, const Export& wanted,
                           const std::string& dir) {
  Variables all;
  for (; environ != nullptr && *environ != nullptr; ++environ) {
    const std::string_view variable(*environ);
    const size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    all.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  const bool in_mpi = all.contains("OMPI_COMM_WORLD_RANK") || all.contains("MUSTER_RUN_DIR");
  Variables out;
  if (wanted.what == Export::What::all) {
    for (auto& [name, value] : all) {
      if (stays_here(name) || !fits(name, value)) continue;
      if (wanted.for_mpi && is_of_launcher(name, in_mpi)) continue;
      if (wanted.elsewhere && names_devices(name)) continue;
      out.emplace(name, value);
    }
  }
  for (const std::string& name : wanted.names) {
    const auto found = all.find(name);
    if (found == all.end()) return invalid("--export: " + name + " is not set");
    if (!fits(name, found->second))
      return invalid("--export: " + name + " is not UTF-8, so it cannot be part of a manifest");
    out.insert(*found);
  }
  if (const auto pwd = out.find("PWD"); pwd != out.end() && !dir.empty()) pwd->second = dir;
  return out;
}

Result<std::pair<std::string, std::string>> parse_variable(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    return invalid("`" + text + "`: must be NAME=VALUE");
  std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  if (!fits(name, value)) return invalid("`" + name + "`: name and value must be UTF-8 text");
  return std::pair(std::move(name), std::move(value));
}

std::string user_name() {
  const passwd* const entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

core::ProcessSettings shell_settings() {
  core::ProcessSettings settings;
  settings.umask = umask(077);
  umask(*settings.umask);
  for (const char* name : kShellLimits) {
    const int resource = core::find_resource(name)->resource;
    rlimit value{};
    if (getrlimit(resource, &value) != 0) continue;
    if (resource == RLIMIT_NOFILE && value.rlim_cur < core::kFewestFiles) continue;
    settings.soft_limits.emplace(name, value.rlim_cur);
  }
  return settings;
}

bool is_utf8(std::string_view text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {  // dump() is strict about UTF-8
    return false;
  }
}

}  // namespace muster::cli
