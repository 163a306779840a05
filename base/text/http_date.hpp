// The Date header of HTTP (RFC 9110, 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". Pure.
#pragma once

#include "base/clock.hpp"

#include <optional>
#include <string>

namespace muster {

// In whole seconds, rounded down.
std::string http_date(Millis instant_ms);
// Reads that form only, which servers must use; nullopt: it is not one.
std::optional<Millis> parse_http_date(const std::string& text);

}  // namespace muster
