// Printer: assembles the lines of many streams and writes them, to stdout and stderr or to files.
#pragma once

#include "client/follow/pod_files.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster::cli {

class Printer {
 public:
  // One stream of one pod.
  struct Stream {
    std::string lead;  // "3 | "; empty: bytes are written as they arrive
    bool err = false;
    PodFiles::File* file = nullptr;  // in place of stdout and stderr
    std::string partial{};           // an incomplete line
    int64_t offset = 0;              // bytes taken so far
  };
  void take(Stream& stream, std::string_view data);
  // Whether nobody will read what is taken: it need not be read from its log either.
  static bool unread(const Stream& stream);
  void set_files(PodFiles* files) { files_ = files; }
  // The pod has ended: takes an unterminated last line.
  void finish(Stream& stream);
  // Writes what was taken; if there is anything, calls `first` before.
  void flush(const std::function<void()>& first);

 private:
  std::string out_, err_;
  PodFiles* files_ = nullptr;
};

}  // namespace muster::cli
