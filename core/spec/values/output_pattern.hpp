// OutputPattern: the files that pods' output is written to, one per pod: "logs/%j-%i.out"
// (`muster run --output`, muster.dev/stdout).
//
//   %j job   %i index   %a attempt, from 0   %n node   %p pod   %% a percent sign
//   %t task of an array (core/spec/values/inputs.hpp: the index's input)
//   %5i, %5a, %5t  with at least 5 digits
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

// The pod whose output it is.
struct OutputPod {
  std::string job, pod, node;
  std::optional<int64_t> index, attempt;  // unset: none, or unknown
  std::string task{};                     // empty: none, or unknown
};

class OutputPattern {
 public:
  // invalid: an unknown conversion, or no file name.
  static Result<OutputPattern> parse(std::string_view text);

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
    char conversion = 0;  // j, i, a, t, n, p
    size_t digits = 0;
    bool operator==(const Part&) const = default;
  };
  std::string text_;
  std::vector<Part> parts_;
};

// Whether a word names files rather than a way to show output: it has a %, a slash or a dot.
bool looks_like_path(std::string_view word);

}  // namespace muster::core
