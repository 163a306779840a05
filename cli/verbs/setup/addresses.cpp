#include "cli/verbs/setup/addresses.hpp"

#include <unistd.h>

namespace muster::cli {

std::string reachable(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (host != "0.0.0.0" && host != "[::]" && host != "*") return address;
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name + address.substr(colon);
}

}  // namespace muster::cli
