// LineLog: a file of lines that is only appended to, and rotated when it has grown.
//
// Lines are written by a thread of the log's own, so that a slow disk delays no caller. If the disk
// cannot keep up, the oldest of 8,192 waiting lines are dropped, and the next one that is written
// says how many.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace muster {

class LineLog {
 public:
  // Created with mode 0600. Once it would exceed `bytes_max` it becomes PATH.1 (before a suffix:
  // audit.log, audit.1.log), and so on up to `files_max` old ones.
  static Result<std::unique_ptr<LineLog>> open(const std::string& path, size_t bytes_max,
                                               size_t files_max);
  // Writes what is waiting.
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  // `line`: without its end. Returns at once; one thread.
  void write(std::string line);

 private:
  struct Files;
  explicit LineLog(std::unique_ptr<Files> files);
  std::unique_ptr<Files> files_;
};

}  // namespace muster
