// Options of the verbs that patch one field of jobs or nodes.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

// suspend, resume, scale, throttle (jobs), cordon, uncordon (nodes).
struct ChangeOptions {
  enum class What { suspend, resume, scale, throttle, cordon, uncordon };
  What what = What::suspend;
  Target target;
  std::vector<std::string> names;
  bool cron = false;                   // of cron jobs: suspend, resume
  std::optional<int32_t> completions;  // scale; also sets parallelism
  std::optional<int32_t> parallelism;  // scale, throttle
  std::string reason{};                // cordon; may be empty
};

int execute(const ChangeOptions& options);

}  // namespace muster::cli
