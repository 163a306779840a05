// OwnFiles: the files that a job's pods write to in place of their logs (muster.dev/stdout), as far
// as this machine has them.
#pragma once

#include "base/result.hpp"
#include "client/inputs/inputs.hpp"
#include "client/terminal/json.hpp"
#include "core/spec/fields/process_settings.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace muster::cli {

class OwnFiles {
 public:
  explicit OwnFiles(const Json& job);
  bool any() const { return settings_.files(); }
  // Whether their names depend on the node.
  bool on_node() const;
  // Those of an attempt; of a NonIndexed job, `index` is the pod's number. `node`: empty if
  // unknown. `err`: only the one that has stderr, or stdout.
  std::vector<std::string> paths(int64_t index, int64_t attempt, const std::string& node,
                                 std::optional<bool> err = {}) const;

  // Calls `write` with the bytes of one of these files or, with `lines`, with those last lines of
  // it. Whoever may write to its directory could have put something else there for the reader to
  // see, so only a regular file of the pod's user is read, and a link in its place is not followed.
  // invalid: it cannot be read on this machine, or is not such a file; says which and why.
  Status read(const std::string& path, std::optional<int64_t> lines,
              const std::function<bool(std::string_view)>& write) const;

 private:
  core::ProcessSettings settings_;
  uid_t user_;  // of the pods: the job's owner; ours if it has none
  std::string name_, uid_;
  bool indexed_;
  JobInputs inputs_;
};

}  // namespace muster::cli
