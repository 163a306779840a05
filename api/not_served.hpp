// NotServed: what kubectl asks a Kubernetes for and muster does not have, each with the way that
// there is instead.
#pragma once

#include "api/url.hpp"

#include <kj/compat/http.h>

#include <string>

namespace muster::api {

// The message for the client; empty if it is none of these.
std::string not_served(kj::HttpMethod method, const Url& url);

}  // namespace muster::api
