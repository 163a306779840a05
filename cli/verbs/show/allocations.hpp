// Options of muster get allocations.
#pragma once

#include "cli/verbs/verb.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct AllocationsOptions {
  Target target;
  std::vector<std::string> pools;  // empty: all
  bool all_namespaces = false;
  Output output = Output::table;
  bool headers = true;
};

bool is_allocation_kind(std::string_view word);

int execute(const AllocationsOptions& options);

}  // namespace muster::cli
