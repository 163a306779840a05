// The OpenAPI v2 document, in hand-encoded protobuf: a field is its number and wire type, then a
// length and the bytes. Message names and field numbers are those of gnostic's OpenAPIv2.proto.
#include "api/kube/schema/api_types.hpp"
#include "api/kube/schema/openapi.hpp"
#include "api/kube/schema/resources.hpp"

#include <cstdint>

namespace muster::api {
namespace {

void add_varint(std::string& out, uint64_t n) {
  for (; n >= 0x80; n >>= 7) out += static_cast<char>((n & 0x7f) | 0x80);
  out += static_cast<char>(n);
}

// Adds a string or a message.
void add(std::string& out, unsigned number, std::string_view bytes) {
  constexpr unsigned kLengthDelimited = 2;
  add_varint(out, number << 3 | kLengthDelimited);
  add_varint(out, bytes.size());
  out += bytes;
}

std::string named(std::string_view name, std::string_view value) {
  std::string out;  // NamedSchema, NamedAny
  add(out, 1, name);
  add(out, 2, value);
  return out;
}

// A vendor extension. `yaml` is its value; JSON is valid YAML.
std::string extension(std::string_view name, std::string_view yaml) {
  std::string any;
  add(any, 2, yaml);
  return named(name, any);
}

// Field numbers of Schema.
constexpr unsigned kRef = 1, kFormat = 2, kDescription = 4, kRequired = 19, kAdditional = 21,
                   kType = 22, kItems = 23, kProperties = 25, kVendorExtension = 31;

void add_type(std::string& out, std::string_view type) {
  std::string item;
  add(item, 1, type);
  add(out, kType, item);
}

void add_value(std::string& out, const ApiField& field) {
  if (field.of != nullptr) return add(out, kRef, "#/definitions/" + std::string(field.of->schema));
  const std::string_view type = field.type;
  const bool time = type == "time" || type == "microtime";
  if (type == "bytes") add(out, kFormat, "byte");
  if (type == "int32" || type == "int64" || time) add(out, kFormat, time ? "date-time" : type);
  add_type(out, type == "int32" || type == "int64" ? "integer"
                : type == "bool"                   ? "boolean"
                : type == "any"                    ? "object"
                                                   : "string");
}

std::string field_schema(const ApiField& field) {
  std::string out, inner, item;
  add(out, kDescription, field.about);
  if (!field.list && !field.map) {
    add_value(out, field);
    return out;
  }
  add_value(inner, field);
  add(item, 1, inner);
  add(out, field.list ? kItems : kAdditional, item);
  add_type(out, field.list ? "array" : "object");
  if (!field.keys.empty() && field.merged)
    add(out, kVendorExtension, extension("x-kubernetes-patch-merge-key", field.keys.front()));
  if (field.merged) add(out, kVendorExtension, extension("x-kubernetes-patch-strategy", "merge"));
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
  add(out, kDescription, type.about);
  for (const ApiField& field : type.fields) {
    if (field.required) add(out, kRequired, field.name);
    add(properties, 1, named(field.name, field_schema(field)));
  }
  add_type(out, "object");
  add(out, kProperties, properties);
  if (!type.group_version.empty())
    add(out, kVendorExtension, extension(kKind, dumped(OrderedJson::array({kind_of(type)}))));
  return out;
}

// Before a dry run, old clients check here whether a patch of this kind has the parameter.
std::string patch_path(const Resource& resource) {
  std::string sub_schema, non_body, parameter, item, operation, path;
  add(sub_schema, 2, "query");
  add(sub_schema, 4, "dryRun");
  add(sub_schema, 6, "string");
  add(non_body, 3, sub_schema);
  add(parameter, 2, non_body);
  add(item, 1, parameter);
  add(operation, 8, item);
  add(operation, 13, extension(kKind, dumped(kind_of(type_of(resource)))));
  add(path, 8, operation);
  return named((resource.group.empty() ? "/api/" : "/apis/") + resource.group_version() +
                   (resource.namespaced ? "/namespaces/{namespace}/" : "/") +
                   std::string(resource.name) + "/{name}",
               path);
}

}  // namespace

std::string openapi_v2(const std::string& version) {
  std::string info, paths, definitions, document;
  add(info, 1, "muster");
  add(info, 2, version);
  for (const ApiType& type : api_types())
    add(definitions, 1, named(type.schema, type_schema(type)));
  for (const Resource& resource : resources())
    if (resource.can("patch") && !resource.is_sub()) add(paths, 2, patch_path(resource));
  constexpr unsigned kSwagger = 1, kInfo = 2, kPaths = 8, kDefinitions = 9;
  add(document, kSwagger, "2.0");
  add(document, kInfo, info);
  add(document, kPaths, paths);
  add(document, kDefinitions, definitions);
  return document;
}

}  // namespace muster::api
