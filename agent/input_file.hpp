// InputFile: the inputs of jobs that name a file (muster.dev/inputs-file), as this agent's user
// reads it.
//
// The pods of a job start in a row, so the last file stays in memory until another one is read or
// it has changed on disk.
#pragma once

#include "base/result.hpp"
#include "core/spec/inputs.hpp"

#include <cstdint>
#include <string>

namespace muster::agent {

class InputFile {
 public:
  // invalid: it cannot be read, or is no regular file of at most core::kInputFileMax bytes.
  Result<core::InputTablePtr> read(const std::string& path);

 private:
  // Whatever a writer changes.
  struct State {
    uint64_t device = 0, inode = 0;
    int64_t size = 0, changed_ns = 0;
    bool operator==(const State&) const = default;
  };
  std::string path_;
  State state_;
  core::InputTablePtr table_;  // null: none was read
};

}  // namespace muster::agent
