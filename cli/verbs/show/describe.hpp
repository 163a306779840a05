// Options of muster describe.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct DescribeOptions {
  Target target;
  std::optional<Kind> kind;  // unset: a job, pod or node of this name
  std::string name;
  bool coordinator = false;  // in place of `kind`
};

int execute(const DescribeOptions& options);

}  // namespace muster::cli
