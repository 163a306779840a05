// OutputPattern: the files that `muster run --output FILE` writes, one per pod, named as in Slurm:
// "logs/%j-%i.out".
//
//   %j job   %i index   %a attempt, from 0   %n node   %p pod   %% a percent sign
//   %5i, %5a  with at least 5 digits
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// The pod whose output it is.
struct OutputPod {
  std::string job, pod, node;
  std::optional<int64_t> index, attempt;  // unset: none, or unknown
};

class OutputPattern {
 public:
  // invalid: an unknown conversion, or no file name.
  static Result<OutputPattern> parse(const std::string& text);

  // Unknown values become "-". No value adds a directory.
  std::string path(const OutputPod& pod) const;
  // The directory that all files of this job are in or below; empty: the current one.
  std::string directory(const std::string& job) const;
  bool has(char conversion) const;
  const std::string& text() const { return text_; }
  // invalid: pods of such a job would write to one file, or have no index.
  Status fits(bool indexed, bool several) const;

  bool operator==(const OutputPattern&) const = default;

 private:
  struct Part {
    std::string text;     // literal text, if there is no conversion
    char conversion = 0;  // j, i, a, n, p
    size_t digits = 0;
    bool operator==(const Part&) const = default;
  };
  std::string text_;
  std::vector<Part> parts_;
};

// Whether a word names files rather than a way to show output: it has a %, a slash or a dot.
bool looks_like_path(std::string_view word);

}  // namespace muster::cli
