// conform(): the walk that checks a document by the types of api/openapi/ (api_types.hpp).
//
// Parts that muster only keeps (affinity, volumes, probes…) are known by name: typed `any`, or
// marked `unread`. What stands in them is not looked at, save that nulls are removed.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// Brings `value` into the shape of the ApiType `type` ("Job", "PodSpec"…): removes nulls and
// unknown fields, and returns the paths of the latter. A quantity written as a number becomes a
// string. A wrong type is `invalid`, with its path, what was found and what is expected. Paths
// begin with `path`, where the value stands in its document; empty: it is the document.
Result<std::vector<std::string>> conform(nlohmann::json& value, std::string_view type,
                                         std::string_view path = {});

}  // namespace muster::api
