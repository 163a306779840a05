// OutputLimit: keeps a process from filling the disk with its output.
//
// What a file has beyond the maximum is cut off, and a line in it says so. The process goes on, and
// what it writes from then on is cut, too. Files are looked at in turns, so that many processes
// cost no more than few; between two looks at a file, it may grow beyond the maximum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace muster::keeper {

constexpr const char* kOutputMaxSetting = "MUSTER_KEEPER_OUTPUT_MAX";  // bytes

class OutputLimit {
 public:
  static constexpr uint64_t kDefaultBytes = uint64_t{10} << 30;
  static constexpr size_t kLooks = 256;  // files in one turn

  // `base_fd`: where relative paths begin. `open`: for writing anywhere (an O_APPEND file takes no
  // offset), follows no link; -1 if it is not an output. 0 bytes: no maximum.
  OutputLimit(uint64_t max_bytes, int base_fd, std::function<int(const std::string& path)> open);

  // The process with this number writes to these files, which have their names.
  void add(uint64_t entry, const std::vector<std::string>& paths);
  void remove(uint64_t entry);
  void look();

 private:
  void check(const std::string& path, uint64_t& allowed);

  const uint64_t max_bytes_;
  const int base_fd_;
  const std::function<int(const std::string& path)> open_;
  // By process and number of the file: its path, and how long it may be, with the line.
  std::map<std::pair<uint64_t, size_t>, std::pair<std::string, uint64_t>> files_;
  std::pair<uint64_t, size_t> next_{};  // the first of the next turn
};

}  // namespace muster::keeper
