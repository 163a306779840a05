// MUSTER_CHECK: ends the process on a bug, or when the disk no longer accepts writes.
//
// Active in every build, release included. Prints the condition and the values passed after it,
// then aborts; the restart recovers from the journal. Needs only this header, so all folders can
// use it.
#pragma once

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

namespace muster {

// Prints the line where stderr is queued (base/lines/stderr_lines.hpp); else null.
inline std::atomic<void (*)(std::string_view line) noexcept> say_failed_check = nullptr;

template <class... Values>
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const Values&... values) {
  std::ostringstream text;
  text << "muster: check failed at " << file << ":" << line << ": " << condition;
  ((text << " [" << values << "]"), ...);
  text << "\n";
  if (auto* const say = say_failed_check.load())
    say(text.str());
  else
    std::cerr << text.str() << std::flush;
  std::abort();
}

}  // namespace muster

#define MUSTER_CHECK(condition, ...)                                                     \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::muster::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
