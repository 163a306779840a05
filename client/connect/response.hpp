// Response: the coordinator's answer, which may be a refusal.
#pragma once

#include "base/clock.hpp"
#include "base/text/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct Response {
  int status = 0;
  std::string body;
  std::vector<std::string> warnings{};  // from Warning headers
  std::string content_type{};
  Json json{};  // the body, parsed and checked (expected.hpp); null: a refusal, or text
  std::optional<Millis> date_ms{};  // the coordinator's clock, rounded down to seconds
  bool ok() const { return status >= 200 && status < 300; }
};

}  // namespace muster::cli
