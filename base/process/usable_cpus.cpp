#include "base/process/usable_cpus.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster {
namespace {

constexpr size_t kCpusMax = 65'536;  // beyond what any kernel supports; more than a cpu_set_t holds
constexpr size_t kBitsPerWord = sizeof(unsigned long) * CHAR_BIT;

}  // namespace

std::vector<uint32_t> usable_cpus() {
  std::vector<unsigned long> words(kCpusMax / kBitsPerWord);
  const long bytes = syscall(SYS_sched_getaffinity, 0, words.size() * sizeof words[0],
                             words.data());  // of the kernel's mask
  std::vector<uint32_t> cpus;
  for (long bit = 0; bit < bytes * CHAR_BIT; ++bit) {
    const auto number = static_cast<uint32_t>(bit);
    if ((words[number / kBitsPerWord] >> (number % kBitsPerWord) & 1) != 0) cpus.push_back(number);
  }
  return cpus;
}

uint32_t usable_cpu_count() {
  return static_cast<uint32_t>(std::max<size_t>(1, usable_cpus().size()));
}

}  // namespace muster
