// Response: the coordinator's answer, which may be a refusal.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

struct Response {
  int status = 0;
  std::string body;
  std::vector<std::string> warnings{};  // from Warning headers
  bool ok() const { return status >= 200 && status < 300; }
};

}  // namespace muster::cli
