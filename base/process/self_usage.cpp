#include "base/process/self_usage.hpp"

#include <cstdio>
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

namespace muster {

double own_resident_bytes() {
  long pages = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t own_open_files() {
  DIR* dir = opendir("/proc/self/fd");
  if (!dir) return -1;
  int64_t count = -3;  // ".", ".." and the directory itself
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

}  // namespace muster
