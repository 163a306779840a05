// Not served: requests of kubectl that muster does not support, each with a message that says what
// to do instead.
#pragma once

#include "api/http/url.hpp"

#include <kj/compat/http.h>

#include <optional>
#include <string_view>

namespace muster::api {

struct NotServed {
  std::string_view message;
  const char* allow;  // the methods that are allowed
};

// Nothing if the request is none of these.
std::optional<NotServed> not_served(kj::HttpMethod method, const Url& url);

}  // namespace muster::api
