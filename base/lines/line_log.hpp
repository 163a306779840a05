// LineLog: an append-only file of lines, rotated by size.
//
// The log's own thread writes the lines, so a slow disk delays no caller. If the disk cannot keep
// up, the oldest of 8,192 waiting lines are dropped, and the next line written is preceded by one
// that says how many.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace muster {

class LineLog {
 public:
  // Creates the file with mode 0600. Once it would exceed `bytes_max`, it is renamed to PATH.1
  // (before a suffix: audit.log, audit.1.log), and so on up to `files_max` old files.
  static Result<std::unique_ptr<LineLog>> open(const std::string& path, size_t bytes_max,
                                               size_t files_max);
  // Writes the waiting lines.
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  // `line`: without the newline. Returns at once. Not thread-safe.
  void write(std::string line);

 private:
  struct Files;
  explicit LineLog(std::unique_ptr<Files> files);
  std::unique_ptr<Files> files_;
};

}  // namespace muster
