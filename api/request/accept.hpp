// Accept: in which form and encoding the API answers, by the request's header Accept (RFC 9110,
// 12.5.1).
#pragma once

#include "api/view/render/render.hpp"

#include <optional>
#include <string_view>

namespace muster::api {

struct Accepted {
  Form form = Form::plain;
  Encoding encoding = Encoding::json;
  bool json_too = true;  // the same form would be accepted as JSON
};

// The first that can be sent of what the header names, in the order of its weights; what it asks
// for in parameters (as=Table, as=PartialObjectMetadata) must be known. Nothing: none can be sent.
// `watch`: events are sent, which have no YAML form.
std::optional<Accepted> accepted(std::string_view header, bool watch);

}  // namespace muster::api
