// NotServed: what kubectl asks a Kubernetes for and muster does not have, each with the way that
// there is instead.
#pragma once

#include "api/http/url.hpp"

#include <kj/compat/http.h>

#include <optional>
#include <string_view>

namespace muster::api {

struct NotServed {
  std::string_view message;
  const char* allow;  // the methods that there are
};

// Nothing: it is none of these.
std::optional<NotServed> not_served(kj::HttpMethod method, const Url& url);

}  // namespace muster::api
