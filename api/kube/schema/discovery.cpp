#include "api/kube/schema/discovery.hpp"

#include "api/http/words.hpp"
#include "api/kube/schema/openapi.hpp"
#include "api/kube/schema/resources.hpp"
#include "base/bytes.hpp"
#include "base/text/json.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace muster::api {
namespace {

// Clients request it with '@' instead of the second-to-last '.'; a Content-Type may not contain
// '@'.
constexpr const char* kProtobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

OrderedJson resource_json(const Resource& resource) {
  OrderedJson json = {{"name", resource.name},
                      {"singularName", resource.singular},
                      {"namespaced", resource.namespaced}};
  if (const std::string_view of = resource.kind_group_version; !of.empty()) {
    json["group"] = of.substr(0, of.find('/'));
    json["version"] = of.substr(of.find('/') + 1);
  }
  json["kind"] = resource.kind;
  json["verbs"] = words(resource.verbs);
  if (!resource.short_names.empty()) json["shortNames"] = words(resource.short_names);
  if (!resource.category.empty()) json["categories"] = words(resource.category);
  return json;
}

OrderedJson resource_list(const std::string& group_version) {
  OrderedJson list = {
      {"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", group_version}};
  list["resources"] = OrderedJson::array();
  for (const Resource& resource : resources())
    if (resource.group_version() == group_version)
      list["resources"].push_back(resource_json(resource));
  return list;
}

std::string group_version(const Group& group) {
  return std::string(group.name) + "/" + std::string(group.version);
}

OrderedJson group_json(const Group& group) {
  const OrderedJson version = {{"groupVersion", group_version(group)}, {"version", group.version}};
  OrderedJson json = {{"name", group.name}};
  json["versions"] = OrderedJson::array({version});
  json["preferredVersion"] = version;
  return json;
}

// Clients use the hash only to tell texts apart in their caches.
std::string hash_of(std::string_view text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIX64, fnv1a(text));
  return digits;
}

Document kept(std::string text, const char* type = "application/json") {
  std::string etag = "\"" + hash_of(text) + "\"";
  return {std::move(text), type, std::move(etag)};
}

// The documents by path.
std::map<std::string, Document> documents(const std::string& version) {
  std::map<std::string, Document> all;
  all["/version"] = {dumped(OrderedJson{{"major", "1"},
                                        {"minor", "32"},
                                        {"gitVersion", "v1.32.0+muster." + version},
                                        {"gitCommit", ""},
                                        {"gitTreeState", ""},
                                        {"buildDate", ""},
                                        {"goVersion", ""},
                                        {"compiler", ""},
                                        {"platform", "linux"}})};
  OrderedJson versions = {{"kind", "APIVersions"}};
  versions["versions"] = OrderedJson::array({"v1"});
  versions["serverAddressByClientCIDRs"] = OrderedJson::array();
  all["/api"] = {dumped(versions)};
  all["/api/v1"] = {dumped(resource_list("v1"))};

  OrderedJson list = {{"kind", "APIGroupList"}, {"apiVersion", "v1"}};
  list["groups"] = OrderedJson::array();
  for (const Group& group : groups()) {
    OrderedJson json = group_json(group);
    list["groups"].push_back(json);
    json["kind"] = "APIGroup";
    json["apiVersion"] = "v1";
    all["/apis/" + std::string(group.name)] = {dumped(json)};
    all["/apis/" + group_version(group)] = {dumped(resource_list(group_version(group)))};
  }
  all["/apis"] = {dumped(list)};

  OrderedJson index;
  for (const std::string& path : openapi_paths()) {
    Document document = kept(dumped(openapi_v3(path, version)));
    const std::string hash = document.etag.substr(1, document.etag.size() - 2);
    index["paths"][path]["serverRelativeURL"] = "/openapi/v3/" + path + "?hash=" + hash;
    all["/openapi/v3/" + path] = std::move(document);
  }
  all["/openapi/v3"] = {dumped(index)};
  all["/openapi/v2"] = kept(openapi_v2(version), kProtobuf);
  return all;
}

}  // namespace

const Document* Discovery::find(const Url& url) {
  if (all_.empty()) all_ = documents(version_);
  std::string path;
  for (const std::string& part : url.path) path += "/" + part;
  const auto found = all_.find(path);
  return found == all_.end() ? nullptr : &found->second;
}

}  // namespace muster::api
