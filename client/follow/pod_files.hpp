// PodFiles: writes what pods print to files that the user names (output_pattern.hpp).
//
// The stdout and stderr of a pod go to one file, or each to its own, in whole lines as they arrive;
// or only stderr goes to a file. Each pod starts its file afresh. If attempts share a file, the
// newest owns it, and what older ones still print is dropped. A pod that prints nothing gets an
// empty file. Files are created with the user's original umask. None stays open: there may be 10^5.
//
// All output is also in a log, so a failed write loses nothing. Failures are counted, only the
// first is reported, and each ends the output of its pod only.
#pragma once

#include "base/result.hpp"
#include "core/spec/values/output_pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::cli {

class PodFiles {
 public:
  // `err`: for stderr, if that has files of its own. At least one of them.
  explicit PodFiles(std::optional<core::OutputPattern> pattern,
                    std::optional<core::OutputPattern> err = {})
      : pattern_(std::move(pattern)), err_(std::move(err)) {}
  bool apart() const { return err_.has_value(); }
  // Whether stdout, or stderr, goes to a file.
  bool takes(bool err) const { return pattern_ || (err && err_); }

  // Creates the directory that all files will be in or below. `job`: empty if its name is not known
  // yet. invalid: the directory cannot be created or written to, or the pattern does not fit this
  // job.
  Status prepare(const std::string& job, bool indexed, bool several) const;

  struct File {
    std::string path;
    int64_t attempt = -1;  // -1: unknown
    bool own = false;      // no other attempt has it
    bool begun = false;    // it belongs to this pod
    bool dropped = false;  // a newer attempt owns it, or it cannot be written
  };
  // Of a stream that goes to one.
  File file_of(const core::OutputPod& pod, bool err) const;
  // Whether an earlier run has left this many bytes in the file, so that it need not be rewritten.
  bool holds(const File& file, int64_t bytes) const;
  // Marks the file as complete.
  void keep(File& file);
  // Creates the pod's file if it has none yet. `anew`: truncates an existing one.
  void begin(File& file, bool anew);
  // Appends; the first call creates or truncates the file.
  void write(File& file, std::string_view data);

  size_t failures() const { return failures_; }

 private:
  static Status prepare(const core::OutputPattern& pattern, const std::string& flag,
                        const std::string& job, bool indexed, bool several);
  bool claim(File& file);
  bool owned(const File& file) const;
  void append(File& file, std::string_view data, bool anew);
  void fail(File& file, int error);

  const std::optional<core::OutputPattern> pattern_;
  const std::optional<core::OutputPattern> err_;
  std::map<std::string, int64_t>
      owners_;  // the newest attempt of a file, if several could share it
  size_t failures_ = 0;
};

}  // namespace muster::cli
