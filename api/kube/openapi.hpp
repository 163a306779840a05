// OpenAPI: the documents with which kubectl explains fields, merges lists, and decides whether the
// server can check a manifest.
//
// Version 3 is one JSON document for each group and version. Version 2 is one protobuf document,
// which kubectl before 1.27 needs before it creates anything. Both hold the same types
// (api_types.hpp) and operations (resources.hpp).
#pragma once

#include "api/kube/api_types.hpp"
#include "api/kube/resources.hpp"
#include "text/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// "api/v1", "apis/batch/v1", …
std::vector<std::string> openapi_paths();
// The document of one of them; null for other paths.
OrderedJson openapi_v3(std::string_view path, const std::string& version);
// A google.gnostic.openapi.v2.Document.
std::string openapi_v2(const std::string& version);

// The type of a resource's objects.
const ApiType& type_of(const Resource& resource);

}  // namespace muster::api
