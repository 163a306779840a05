// Options of muster why.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct WhyOptions {
  Target target;
  std::string job;
  std::optional<int64_t> index;
  Output output = Output::table;
};

int execute(const WhyOptions& options);

}  // namespace muster::cli
