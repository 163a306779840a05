// Response: what a coordinator answered, be it a refusal.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

struct Response {
  int status = 0;
  std::string body;
  std::vector<std::string> warnings{};  // of the headers
  bool ok() const { return status >= 200 && status < 300; }
};

}  // namespace muster::cli
