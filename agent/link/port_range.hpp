// PortRange: the TCP ports that a site allows for something.
#pragma once

#include <cstdint>

namespace muster::agent {

struct PortRange {
  uint16_t first = 0, last = 0;  // 0: any that the kernel chooses
  bool operator==(const PortRange&) const = default;
};

}  // namespace muster::agent
