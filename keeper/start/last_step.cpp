#include "keeper/start/last_step.hpp"

#include "keeper/kernel/start_fault.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace muster::keeper {

size_t StartFailure::describe(char* text, size_t size) const noexcept {
  const int length = std::snprintf(text, size, "%s%s%s%s%s%s%s%s%s", what,
                                   subject != nullptr ? " " : "", subject != nullptr ? subject : "",
                                   part != nullptr ? ": " : "", part != nullptr ? part : "",
                                   error != 0 ? ": " : "", error != 0 ? strerrordesc_np(error) : "",
                                   advice != nullptr ? "; " : "", advice != nullptr ? advice : "");
  return std::min(static_cast<size_t>(std::max(length, 0)), size - 1);
}

MUSTER_IN_CHILD StartFailure LastStep::begin() const noexcept {
  if (chdir(cwd.c_str()) != 0 && !(home && chdir("/") == 0))
    return {"cwd", cwd.c_str(), errno, core::kExitNotHere};
  if (privileges.any() && !give_up(privileges))
    return {"securityContext", nullptr, errno, exit_of_start(errno)};
  return {};
}

MUSTER_IN_CHILD StartFailure LastStep::execute(const std::vector<std::string>& programs,
                                               char* const* argv, char* const* envp,
                                               const StartSettings* settings) const noexcept {
  if (too_late(not_after_ms)) return {kTooLate, nullptr, 0, core::kExitNotHere};
  if (settings != nullptr) settings->begin_files();
  StartFailure failure{"exec", nullptr, ENOENT, kExitNotFound};
  const std::string* const all = programs.data();
  const size_t count = programs.size();
  for (size_t i = 0; i < count; ++i) {
    execve(all[i].c_str(), argv, envp);
    const int error = errno;
    if (exit_of_exec(error) != kExitNotFound) {
      failure.error = error;
      failure.exit_code = exit_of_start(error);
      failure.part = nullptr;
    } else if (failure.exit_code == kExitNotFound && access(all[i].c_str(), F_OK) == 0) {
      // The file is there; what the kernel has not found is the program in its first line, or the
      // loader that it is linked for.
      failure.error = error;
      failure.exit_code = kExitCannotStart;
      failure.part = "bad interpreter";
    }
  }
  failure.subject = count == 1 ? all->c_str() : argv[0];
  return failure;
}

}  // namespace muster::keeper
