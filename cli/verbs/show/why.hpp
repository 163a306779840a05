// Options of muster why.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct WhyOptions {
  Target target;
  std::string job;
  std::optional<int64_t> index;
  std::optional<int64_t> task{};  // in place of `index`, by the numbers of --array
  Output output = Output::table;
};

int execute(const WhyOptions& options);

}  // namespace muster::cli
