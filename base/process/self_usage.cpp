#include "base/process/self_usage.hpp"

#include <cstdio>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
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

void tell_own_usage(Exposition& out, const std::string& who, Millis started_ms) {
  out.gauge("process_start_time_seconds", "Start time of " + who + ", in seconds since the epoch.",
            static_cast<double>(started_ms) / 1000);
  out.gauge("process_resident_memory_bytes", "Resident memory of " + who + ".",
            own_resident_bytes());
  out.counter("process_cpu_seconds_total", "CPU time of " + who + ".", own_cpu_seconds());
  out.gauge("process_open_fds", "Open files of " + who + ".",
            static_cast<double>(own_open_files()));
}

void tell_disk(Exposition& out, const std::string& prefix, const std::string& path,
               const std::string& what) {
  struct statvfs disk {};
  if (statvfs(path.c_str(), &disk) != 0) return;
  const auto block = static_cast<double>(disk.f_frsize);
  out.gauge(prefix + "_disk_free_bytes", "Free space for " + what + ".",
            block * static_cast<double>(disk.f_bavail));
  out.gauge(prefix + "_disk_bytes", "Size of the disk with " + what + ".",
            block * static_cast<double>(disk.f_blocks));
}

}  // namespace muster
