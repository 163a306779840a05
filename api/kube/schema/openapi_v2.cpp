// The OpenAPI v2 document, in hand-encoded protobuf: a field is its number and wire type, then a
// length and the bytes. Message names and field numbers are those of gnostic's OpenAPIv2.proto.
#include "api/kube/schema/api_types.hpp"
#include "api/kube/schema/openapi.hpp"
#include "api/kube/schema/protobuf_wire.hpp"
#include "api/kube/schema/resources.hpp"

#include <cstdint>

namespace muster::api {
namespace {

std::string named(std::string_view name, std::string_view value) {
  std::string out;  // NamedSchema, NamedAny
  add_bytes(out, 1, name);
  add_bytes(out, 2, value);
  return out;
}

// A vendor extension. `yaml` is its value; JSON is valid YAML.
std::string extension(std::string_view name, std::string_view yaml) {
  std::string any;
  add_bytes(any, 2, yaml);
  return named(name, any);
}

// Field numbers of Schema.
constexpr unsigned kRef = 1, kFormat = 2, kDescription = 4, kRequired = 19, kAdditional = 21,
                   kType = 22, kItems = 23, kProperties = 25, kVendorExtension = 31;

void add_type(std::string& out, std::string_view type) {
  std::string item;
  add_bytes(item, 1, type);
  add_bytes(out, kType, item);
}

void add_value(std::string& out, const ApiField& field) {
  if (field.of != nullptr)
    return add_bytes(out, kRef, "#/definitions/" + std::string(field.of->schema));
  const std::string_view type = field.type;
  const bool time = type == "time" || type == "microtime";
  if (type == "bytes") add_bytes(out, kFormat, "byte");
  if (type == "int32" || type == "int64" || time)
    add_bytes(out, kFormat, time ? "date-time" : type);
  add_type(out, type == "int32" || type == "int64"  ? "integer"
                : type == "bool"                    ? "boolean"
                : type == "any" || type == "fields" ? "object"
                                                    : "string");
}

std::string field_schema(const ApiField& field) {
  std::string out, inner, item;
  add_bytes(out, kDescription, field.about);
  if (!field.list && !field.map) {
    add_value(out, field);
    return out;
  }
  add_value(inner, field);
  add_bytes(item, 1, inner);
  add_bytes(out, field.list ? kItems : kAdditional, item);
  add_type(out, field.list ? "array" : "object");
  if (!field.keys.empty() && field.merged)
    add_bytes(out, kVendorExtension, extension("x-kubernetes-patch-merge-key", field.keys.front()));
  if (field.merged)
    add_bytes(out, kVendorExtension, extension("x-kubernetes-patch-strategy", "merge"));
  return out;
}

constexpr const char* kKind = "x-kubernetes-group-version-kind";

OrderedJson kind_of(const ApiType& type) {
  const size_t slash = type.group_version.find('/');
  const bool core = slash == std::string_view::npos;
  return {{"group", core ? "" : type.group_version.substr(0, slash)},
          {"kind", type.kind},
          {"version", type.group_version.substr(core ? 0 : slash + 1)}};
}

std::string type_schema(const ApiType& type) {
  std::string out, properties;
  add_bytes(out, kDescription, type.about);
  for (const ApiField& field : type.fields) {
    if (field.required) add_bytes(out, kRequired, field.name);
    add_bytes(properties, 1, named(field.name, field_schema(field)));
  }
  add_type(out, "object");
  add_bytes(out, kProperties, properties);
  if (!type.group_version.empty())
    add_bytes(out, kVendorExtension, extension(kKind, dumped(OrderedJson::array({kind_of(type)}))));
  return out;
}

// Before a dry run, old clients check here whether a patch of this kind has the parameter.
std::string patch_path(const Resource& resource) {
  std::string sub_schema, non_body, parameter, item, operation, path;
  add_bytes(sub_schema, 2, "query");
  add_bytes(sub_schema, 4, "dryRun");
  add_bytes(sub_schema, 6, "string");
  add_bytes(non_body, 3, sub_schema);
  add_bytes(parameter, 2, non_body);
  add_bytes(item, 1, parameter);
  add_bytes(operation, 8, item);
  add_bytes(operation, 13, extension(kKind, dumped(kind_of(type_of(resource)))));
  add_bytes(path, 8, operation);
  return named((resource.group.empty() ? "/api/" : "/apis/") + resource.group_version() +
                   (resource.namespaced ? "/namespaces/{namespace}/" : "/") +
                   std::string(resource.name) + "/{name}",
               path);
}

}  // namespace

std::string openapi_v2(const std::string& version) {
  std::string info, paths, definitions, document;
  add_bytes(info, 1, "muster");
  add_bytes(info, 2, version);
  for (const ApiType& type : api_types())
    add_bytes(definitions, 1, named(type.schema, type_schema(type)));
  for (const Resource& resource : resources())
    if (resource.can("patch") && !resource.is_sub()) add_bytes(paths, 2, patch_path(resource));
  constexpr unsigned kSwagger = 1, kInfo = 2, kPaths = 8, kDefinitions = 9;
  add_bytes(document, kSwagger, "2.0");
  add_bytes(document, kInfo, info);
  add_bytes(document, kPaths, paths);
  add_bytes(document, kDefinitions, definitions);
  return document;
}

}  // namespace muster::api
