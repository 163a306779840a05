// Options of muster promote, demote and remove.
#pragma once

#include "cli/verbs/verb.hpp"

#include <string>

namespace muster::cli {

struct LeadOptions {
  enum class What { promote, demote, remove };
  What what = What::promote;
  Target target;
  std::string name;  // demote: may be empty, the one that leads
};

int execute(const LeadOptions& options);

}  // namespace muster::cli
