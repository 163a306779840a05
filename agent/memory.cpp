#include "agent/memory.hpp"

#include "base/process/process_stat.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace muster::agent {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::optional<uint64_t> available_memory(const std::string& meminfo) {
  constexpr std::string_view kName = "MemAvailable:";
  const size_t at = meminfo.find(kName);
  if (at == std::string::npos) return std::nullopt;
  std::istringstream in(meminfo.substr(at + kName.size()));
  uint64_t kib = 0;
  if (!(in >> kib)) return std::nullopt;
  return kib * 1024;
}

std::optional<uint64_t> available_memory() {
  return available_memory(read_file("/proc/meminfo"));
}

std::map<int, uint64_t> memory_by_group() {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::map<int, uint64_t> bytes;
  std::error_code gone;
  for (std::filesystem::directory_iterator it("/proc", gone), end; !gone && it != end;
       it.increment(gone)) {
    const std::string name = it->path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc{}) continue;
    if (const auto stat = process_stat(name)) bytes[stat->group] += stat->pages * page;
  }
  return bytes;
}

}  // namespace muster::agent
