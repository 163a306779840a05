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

 private:
  core::ProcessSettings settings_;
  std::string name_, uid_;
  bool indexed_;
  JobInputs inputs_;
};

// Calls `write` with the file's bytes or, with `lines`, with those last lines of it. invalid: it
// cannot be read on this machine.
Status read_own_file(const std::string& path, std::optional<int64_t> lines,
                     const std::function<bool(std::string_view)>& write);

}  // namespace muster::cli
