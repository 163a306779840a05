// Options of the verbs that change a job beside its object.
#pragma once

#include "base/text/json.hpp"
#include "cli/verbs/verb.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct HoldOptions {
  Target target;
  bool hold = true;  // else release
  std::vector<std::string> names;
  std::string reason;  // of a hold; may be empty
};
int execute(const HoldOptions& options);

struct SetOptions {
  Target target;
  std::vector<std::string> names;
  Json overrides = Json::object();  // as the API takes them
};
int execute(const SetOptions& options);

}  // namespace muster::cli
