// The executable of this process.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace muster {

// Its path; empty: unknown. " (deleted)" follows if the file has been replaced.
inline std::string own_executable() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).string();
}

}  // namespace muster
