// conform(): checks a document against the types of api/openapi/ (api_types.hpp).
//
// Parts that muster does not interpret (ports, probes, dnsConfig…) are known by name only: typed
// `any`, or marked `unread`. Their contents are not checked; only nulls are removed.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

struct UnknownField {
  std::string path;   // "spec.paralelism"
  std::string meant;  // that object's field with the closest name; empty if none is close
};

// Makes `value` conform to the ApiType `type` ("Job", "PodSpec"…): removes nulls and unknown
// fields, and returns the unknown fields. A quantity becomes the text that Kubernetes prints for
// it. A wrong type is `invalid`; the message has the path, what was found and what is expected.
// Paths begin with `path`, the place of the value in its document (empty if it is the document).
Result<std::vector<UnknownField>> conform(nlohmann::json& value, std::string_view type,
                                          std::string_view path = {});

}  // namespace muster::api
