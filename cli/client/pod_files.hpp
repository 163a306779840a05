// PodFiles: what pods print, in files of the user's (output_pattern.hpp).
//
// stdout and stderr of a pod go to one file, whole lines as they arrive. Each pod begins its file
// anew; of several attempts that share one, the newest has it, and what an older one still prints
// is dropped. A pod that prints nothing has an empty file. Files are made with the umask that the
// user had. None stays open: there may be 10^5.
//
// Everything a file should have is also in a log, so a failed write loses nothing; it is reported
// once, counted, and ends the output of this pod only.
#pragma once

#include "base/result.hpp"
#include "cli/settings/output_pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::cli {

class PodFiles {
 public:
  explicit PodFiles(OutputPattern pattern) : pattern_(std::move(pattern)) {}

  // Makes the directory that all files will be in or below; `job` is empty if its name is not known
  // yet. invalid: that, or writing there, is not possible, or the pattern does not fit this job.
  Status prepare(const std::string& job, bool indexed, bool several) const;

  struct File {
    std::string path;
    int64_t attempt = -1;  // -1: unknown
    bool begun = false;    // it is this pod's
    bool dropped = false;  // a newer attempt has it, or it cannot be written
  };
  File file_of(const OutputPod& pod) const;
  // The file has this much, as an earlier run has left it: nothing needs to be written again.
  bool holds(const File& file, int64_t bytes) const;
  // Says that it is complete already.
  void keep(File& file);
  // The pod has a file, if it has none yet. `anew`: one that is there is emptied.
  void begin(File& file, bool anew);
  // Appends, in a file that is new or emptied the first time.
  void write(File& file, std::string_view data);

  size_t failures() const { return failures_; }

 private:
  bool claim(File& file);
  bool owned(const File& file) const;
  void append(File& file, std::string_view data, bool anew);
  void fail(File& file, int error);

  const OutputPattern pattern_;
  std::map<std::string, int64_t>
      owners_;  // the newest attempt of a file, if several could share it
  size_t failures_ = 0;
};

}  // namespace muster::cli
