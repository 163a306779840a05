// OpenAPI: what is served, for programs: the documents that kubectl explains fields from, merges
// lists by, and looks into before it lets the server check a manifest.
//
// Version 3 is a document for each group and version, in JSON. Version 2 is one document in
// protobuf, for kubectl before 1.27, which wants it before it creates anything. Both hold the same
// types (api_types.hpp) and operations (resources.hpp).
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
// One of them; null if it is none.
OrderedJson openapi_v3(std::string_view path, const std::string& version);
// A google.gnostic.openapi.v2.Document.
std::string openapi_v2(const std::string& version);

// What a resource's objects are.
const ApiType& type_of(const Resource& resource);

}  // namespace muster::api
