// Addresses of the coordinator, as other machines reach them.
#pragma once

#include <string>

namespace muster::cli {

// An address that others can connect to: a wildcard becomes this machine's name.
std::string reachable(const std::string& address);

}  // namespace muster::cli
