// exit_text: how a process ended, as people read it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace muster {

// "exit 1"; "SIGKILL (exit 137)" if a signal (not 0) ended it; "signal 42 (exit 170)" if the signal
// has no name.
inline std::string exit_text(int64_t exit_code, int64_t signal) {
  std::string code = "exit " + std::to_string(exit_code);
  if (signal == 0) return code;
  const char* name = sigabbrev_np(static_cast<int>(signal));
  return (name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal)) + " (" +
         code + ")";
}

}  // namespace muster
