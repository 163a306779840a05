// MUSTER_CHECK: ends the process on a bug, or when the disk no longer accepts writes.
//
// Active in every build, release included. Prints the condition and the values passed after it,
// then aborts; the restart recovers from the journal.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace muster {

template <class... Values>
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const Values&... values) {
  std::cerr << "muster: check failed at " << file << ":" << line << ": " << condition;
  ((std::cerr << " [" << values << "]"), ...);
  std::cerr << std::endl;
  std::abort();
}

}  // namespace muster

#define MUSTER_CHECK(condition, ...)                                                     \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::muster::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
