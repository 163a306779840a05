// Discovery: how a client learns what is served here: groups, resources, and the OpenAPI document
// that kubectl asks for before it lets the server validate (reference: what kubectl 1.32 needs).
#pragma once

#include "api/url.hpp"

#include <optional>
#include <string>

namespace muster::api {

// The JSON of a discovery path, or nothing if it is no such path. `version`: of muster.
std::optional<std::string> discovery(const Url& url, const std::string& version);

}  // namespace muster::api
