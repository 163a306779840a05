// Response: what a coordinator answered, be it a refusal.
#pragma once

#include <string>

namespace muster::cli {

struct Response {
  int status = 0;
  std::string body;
  bool ok() const { return status >= 200 && status < 300; }
};

}  // namespace muster::cli
