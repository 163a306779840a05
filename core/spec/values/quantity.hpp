// Quantities: Kubernetes' numbers with units ("500m", "1.5", "2Gi", "1e3").
//
//   quantity = [+-] digits[.digits] [suffix]     also ".5" and "5."
//   suffix   = n u m k M G T P E | Ki Mi Gi Ti Pi Ei | e[+-]digits | E[+-]digits
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::core {

// In thousandths, rounded away from zero. Values that do not fit into 64 bits (9.2e15 units) are
// clamped to the largest one.
Result<int64_t> parse_quantity_milli(std::string_view text);

// The text that Kubernetes prints for it (Quantity.String() of apimachinery): "0.5" is "500m",
// "1024Mi" is "1Gi", "1000" is "1k". At most nine decimals, rounded away from zero, and at most
// 2^63-1. A text that is no quantity is returned as it is.
std::string canonical_quantity(std::string_view text);

}  // namespace muster::core
