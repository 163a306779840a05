// Fields: the names and types that Kubernetes' v1 Job and Node know, as a table, and the walk that
// checks a document by it.
//
// Parts that muster only keeps (affinity, volumes, probes…) are known by name; what stands in them
// is not looked at.
#pragma once

#include "base/result.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// Brings `value` into the shape of `type` ("Job", "PodSpec"…): removes nulls and unknown fields,
// and returns the paths of the latter. A quantity written as a number becomes a string. A wrong
// type is an error with its path, what was found and what is expected.
Result<std::vector<std::string>> conform(nlohmann::json& value, std::string_view type);

// The type of a field of `type`, as it stands in the table: "string", "[]Container", "{}quantity";
// empty: there is none.
std::string_view field_type(std::string_view type, std::string_view field);

// The fields of a type and the types of those, as they are written in the table: "int32",
// "[]Container", "{}string".
const std::map<std::string_view, std::string_view>& known_fields(std::string_view type);

}  // namespace muster::api
