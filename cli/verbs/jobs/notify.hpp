// Options of muster notify.
#pragma once

#include "base/text/json.hpp"
#include "cli/verbs/verb.hpp"

#include <string>
#include <vector>

namespace muster::cli {

struct NotifyOptions {
  Target target;
  std::vector<std::string> names;
  Json annotations = Json::object();  // to set; null: to remove
};
int execute(const NotifyOptions& options);

}  // namespace muster::cli
