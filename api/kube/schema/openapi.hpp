// OpenAPI: the documents that kubectl uses to explain fields, merge lists, and decide whether the
// server can check a manifest.
//
// Version 3 is one JSON document for each group and version. Version 2 is one protobuf document,
// which kubectl before 1.27 needs to create anything. Both contain the same types (api_types.hpp);
// of the operations (resources.hpp), version 2 has only patches.
#pragma once

#include "api/kube/schema/api_types.hpp"
#include "api/kube/schema/resources.hpp"
#include "base/text/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// "api/v1", "apis/batch/v1", …
std::vector<std::string> openapi_paths();
// The document at one of these paths; null for other paths.
OrderedJson openapi_v3(std::string_view path, const std::string& version);
// A google.gnostic.openapi.v2.Document.
std::string openapi_v2(const std::string& version);

// The type of a resource's objects.
const ApiType& type_of(const Resource& resource);

}  // namespace muster::api
