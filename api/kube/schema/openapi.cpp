#include "api/kube/schema/openapi.hpp"

#include "api/kube/schema/api_types.hpp"
#include "api/kube/schema/resources.hpp"
#include "base/check.hpp"

#include <algorithm>
#include <functional>
#include <set>

namespace muster::api {
namespace {

std::string root_of(const Resource& resource) {
  return (resource.group.empty() ? "api/" : "apis/") + resource.group_version();
}

OrderedJson kind_json(std::string_view group_version, std::string_view kind) {
  const size_t slash = group_version.find('/');
  const bool core = slash == std::string_view::npos;
  return {{"group", core ? "" : group_version.substr(0, slash)},
          {"kind", kind},
          {"version", core ? group_version : group_version.substr(slash + 1)}};
}

OrderedJson reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

OrderedJson value_json(std::string_view type) {
  if (type == "int32" || type == "int64") return {{"type", "integer"}, {"format", type}};
  if (type == "bool") return {{"type", "boolean"}};
  if (type == "bytes") return {{"type", "string"}, {"format", "byte"}};
  if (type == "time" || type == "microtime") return {{"type", "string"}, {"format", "date-time"}};
  if (type == "strings") return {{"type", "array"}, {"items", value_json("string")}};
  if (type == "any" || type == "fields")
    return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  if (const ApiType* of = api_type(type)) {
    // A $ref allows no siblings, and a field needs a description, hence allOf.
    OrderedJson json;
    json["allOf"] = OrderedJson::array({reference(of->schema)});
    return json;
  }
  return {{"type", "string"}};  // includes quantities
}

OrderedJson field_json(const ApiField& field) {
  OrderedJson json;
  if (field.list)
    json = {{"type", "array"}, {"items", value_json(field.type)}};
  else if (field.map)
    json = {{"type", "object"}, {"additionalProperties", value_json(field.type)}};
  else
    json = value_json(field.type);
  json["description"] = field.about;
  if (field.list)
    json["x-kubernetes-list-type"] = !field.keys.empty() ? "map" : field.set ? "set" : "atomic";
  if (field.atomic) json["x-kubernetes-map-type"] = "atomic";
  for (const std::string_view key : field.keys) json["x-kubernetes-list-map-keys"].push_back(key);
  if (!field.keys.empty() && field.merged)
    json["x-kubernetes-patch-merge-key"] = field.keys.front();
  if (field.merged) json["x-kubernetes-patch-strategy"] = "merge";
  return json;
}

OrderedJson schema_json(const ApiType& type) {
  OrderedJson json = {{"type", "object"}, {"description", type.about}};
  std::vector<std::string_view> required;
  for (const ApiField& field : type.fields) {
    if (field.required) required.push_back(field.name);
    json["properties"][field.name] = field_json(field);
  }
  if (!required.empty()) json["required"] = required;
  if (!type.group_version.empty())
    json["x-kubernetes-group-version-kind"] =
        OrderedJson::array({kind_json(type.group_version, type.kind)});
  return json;
}

OrderedJson list_schema(const ApiType& type) {
  OrderedJson json = {{"type", "object"},
                      {"description", "A list of objects of kind " + std::string(type.kind)}};
  json["properties"]["apiVersion"] = {{"type", "string"}, {"description", "Its version."}};
  json["properties"]["kind"] = {{"type", "string"}, {"description", "Its kind."}};
  json["properties"]["metadata"] = value_json("ListMeta");
  json["properties"]["items"] = {{"type", "array"}, {"items", value_json(type.name)}};
  json["required"] = {"items"};
  json["x-kubernetes-group-version-kind"] =
      OrderedJson::array({kind_json(type.group_version, std::string(type.kind) + "List")});
  return json;
}

OrderedJson parameter(const char* name, const char* in, const char* type) {
  return {{"name", name},
          {"in", in},
          {"required", std::string_view(in) == "path"},
          {"schema", {{"type", type}, {"uniqueItems", true}}}};
}

OrderedJson parameters_of(std::string_view verb, std::string_view name) {
  OrderedJson list = OrderedJson::array();
  auto texts = [&](std::initializer_list<const char*> names) {
    for (const char* text : names) list.push_back(parameter(text, "query", "string"));
  };
  auto numbers = [&](std::initializer_list<const char*> names) {
    for (const char* number : names) list.push_back(parameter(number, "query", "integer"));
  };
  if (verb == "create" || verb == "update" || verb == "patch")
    texts({"dryRun", "fieldManager", "fieldValidation"});
  if (verb == "delete" || verb == "deletecollection") {
    texts({"dryRun", "propagationPolicy"});
    numbers({"gracePeriodSeconds"});
  }
  if (verb == "list" || verb == "deletecollection") texts({"labelSelector", "fieldSelector"});
  if (verb == "list") {
    texts({"continue", "resourceVersion"});
    numbers({"limit", "timeoutSeconds"});
    for (const char* flag : {"watch", "allowWatchBookmarks"})
      list.push_back(parameter(flag, "query", "boolean"));
  }
  if (name == "pods/log") {
    texts({"container", "sinceTime", "stream"});
    numbers({"tailLines", "limitBytes", "sinceSeconds"});
    for (const char* flag : {"follow", "previous", "timestamps"})
      list.push_back(parameter(flag, "query", "boolean"));
  }
  return list;
}

struct Verb {
  std::string_view verb, method;
  bool of_collection;
};
constexpr Verb kVerbs[] = {
    {"list", "get", true},       {"create", "post", true}, {"deletecollection", "delete", true},
    {"get", "get", false},       {"update", "put", false}, {"patch", "patch", false},
    {"delete", "delete", false},
};

OrderedJson content(std::initializer_list<const char*> types, const OrderedJson& schema) {
  OrderedJson json;
  for (const char* type : types) json[type]["schema"] = schema;
  return json;
}

OrderedJson operation(const Resource& resource, std::string_view verb) {
  const ApiType& kind = type_of(resource);
  OrderedJson op = {
      {"tags", {root_of(resource)}},
      {"x-kubernetes-action", verb},
      {"x-kubernetes-group-version-kind", kind_json(kind.group_version, resource.kind)}};
  if (OrderedJson parameters = parameters_of(verb, resource.name); !parameters.empty())
    op["parameters"] = std::move(parameters);
  if (verb == "create" || verb == "update")
    op["requestBody"] = {
        {"content", content({"application/json", "application/yaml"}, reference(kind.schema))}};
  if (verb == "patch")
    op["requestBody"] = {
        {"content",
         content({"application/apply-patch+yaml", "application/json-patch+json",
                  "application/merge-patch+json", "application/strategic-merge-patch+json"},
                 OrderedJson{{"type", "object"}})}};
  if (verb == "delete" || verb == "deletecollection")
    op["requestBody"] = {{"content", content({"application/json"}, value_json("DeleteOptions"))}};
  const bool text = resource.name == "pods/log";
  const bool status = verb == "deletecollection" || resource.name == "pods/eviction";
  const OrderedJson schema = text             ? OrderedJson{{"type", "string"}}
                             : status         ? value_json("Status")
                             : verb == "list" ? reference(std::string(kind.schema) + "List")
                                              : reference(kind.schema);
  const char* code = verb == "create" ? "201" : "200";
  op["responses"][code] = {
      {"description", verb == "create" ? "Created" : "OK"},
      {"content", content({text ? "text/plain" : "application/json"}, schema)}};
  return op;
}

// The path of a resource's collection, or of one object or subresource.
std::string path_of(const Resource& resource, bool collection, bool all_namespaces = false) {
  std::string path = "/" + root_of(resource);
  if (resource.namespaced && !all_namespaces) path += "/namespaces/{namespace}";
  const size_t slash = resource.name.find('/');
  path += "/" + std::string(resource.name.substr(0, slash));
  if (collection && !resource.is_sub()) return path;
  path += "/{name}";
  if (resource.is_sub()) path += resource.name.substr(slash);
  return path;
}

OrderedJson paths_json(std::string_view root) {
  OrderedJson paths = OrderedJson::object();
  for (const Resource& resource : resources()) {
    if (root_of(resource) != root) continue;
    for (const Verb& verb : kVerbs) {
      if (!resource.can(verb.verb)) continue;
      OrderedJson& path = paths[path_of(resource, verb.of_collection)];
      path[verb.method] = operation(resource, verb.verb);
      if (verb.verb == "list" && resource.namespaced)
        paths[path_of(resource, true, true)]["get"] = operation(resource, "list");
    }
  }
  for (auto& [path, item] : paths.items())
    for (const char* name : {"namespace", "name"})
      if (path.find("{" + std::string(name) + "}") != std::string::npos)
        item["parameters"].push_back(parameter(name, "path", "string"));
  return paths;
}

OrderedJson schemas_json(std::string_view root) {
  std::set<std::string_view> wanted = {"Status", "DeleteOptions", "ListMeta"};
  OrderedJson schemas = OrderedJson::object();
  for (const Resource& resource : resources()) {
    if (root_of(resource) != root) continue;
    const ApiType& kind = type_of(resource);
    wanted.insert(kind.name);
    if (resource.can("list")) schemas[std::string(kind.schema) + "List"] = list_schema(kind);
  }
  const std::function<void(const ApiType&)> add = [&](const ApiType& type) {
    if (schemas.contains(type.schema)) return;
    schemas[type.schema] = schema_json(type);
    for (const ApiField& field : type.fields)
      if (field.of != nullptr) add(*field.of);
  };
  for (const std::string_view name : wanted) add(*api_type(name));
  return schemas;
}

}  // namespace

const ApiType& type_of(const Resource& resource) {
  const std::string_view own = resource.kind_group_version;
  const ApiType* type =
      api_kind(own.empty() ? resource.group_version() : std::string(own), resource.kind);
  MUSTER_CHECK(type != nullptr, resource.kind);
  return *type;
}

std::vector<std::string> openapi_paths() {
  std::vector<std::string> found;
  for (const Resource& resource : resources())
    if (std::find(found.begin(), found.end(), root_of(resource)) == found.end())
      found.push_back(root_of(resource));
  return found;
}

OrderedJson openapi_v3(std::string_view path, const std::string& version) {
  const auto known = openapi_paths();
  if (std::find(known.begin(), known.end(), path) == known.end()) return nullptr;
  OrderedJson document = {{"openapi", "3.0.0"},
                          {"info", {{"title", "muster"}, {"version", version}}}};
  document["paths"] = paths_json(path);
  document["components"]["schemas"] = schemas_json(path);
  return document;
}

}  // namespace muster::api
