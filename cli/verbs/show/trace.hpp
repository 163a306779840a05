// Options of muster trace.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct TraceOptions {
  Target target;
  std::string pod;  // empty: of this index of this job
  std::string job{};
  std::optional<int64_t> index{};
  std::optional<int64_t> task{};  // in place of `index`, by the numbers of --array
  Output output = Output::table;
};

int execute(const TraceOptions& options);

}  // namespace muster::cli
