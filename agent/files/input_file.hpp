// InputFile: the inputs of jobs that name a file (muster.dev/inputs-file), read as our user.
//
// A job's pods start in a row, so the last file stays in memory until another is read or it changes
// on disk. Links of other users are not followed: who may write to a directory on the way could put
// one there that leads to a file of ours, and its job would print it.
#pragma once

#include "base/result.hpp"
#include "core/spec/values/inputs.hpp"

#include <cstdint>
#include <string>

namespace muster::agent {

class InputFile {
 public:
  // invalid: it cannot be read, is not a regular file of at most core::kInputFileMax bytes, or
  // another user's link leads to it.
  Result<core::InputTablePtr> read(const std::string& path);

 private:
  // Changes with every write.
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
