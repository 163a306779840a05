// ApiTypes: the types of what is served, with the meaning of each field.
//
// Read from the files in api/openapi/ (batch.yaml says how they are written), which are compiled
// in. One place says it, and the OpenAPI documents of both versions are made from it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

struct ApiField {
  std::string name;
  std::string type;  // string, int32, …, any, or an ApiType
  bool list = false, map = false;
  unsigned number = 0;  // in protobuf; 0: can't be told apart there
  bool required = false;
  bool set = false;               // a list of unlike values
  bool merged = false;            // patches add to the list
  std::vector<std::string> keys;  // of a list whose items have some; then it is merged, too
  std::string about;
};

struct ApiType {
  std::string name;
  std::string kind;           // the name without what tells two kinds of one name apart
  std::string schema;         // io.k8s.api.batch.v1.Job
  std::string group_version;  // of a kind: "batch/v1"; empty: a part of others
  std::string about;
  std::vector<ApiField> fields;
};

// By name. Part of the program: a file that can't be read is a bug.
const std::map<std::string, ApiType, std::less<>>& api_types();

// The type of this kind of this group and version; nullptr: there is none.
const ApiType* api_kind(std::string_view group_version, std::string_view kind);

// Is it the name of an ApiType, not of a plain value?
bool is_api_type(std::string_view type);

// The text of a file of api/openapi/, by name without .yaml. Made by the build.
struct OpenApiFile {
  std::string_view name;
  std::string_view text;
};
std::span<const OpenApiFile> openapi_files();

}  // namespace muster::api
