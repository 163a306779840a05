#include "api/discovery.hpp"

#include "api/json.hpp"

namespace muster::api {
namespace {

OrderedJson resource(const char* name, const char* singular, bool namespaced, const char* kind,
                     std::vector<std::string> verbs, std::vector<std::string> short_names = {},
                     std::vector<std::string> categories = {}) {
  OrderedJson r = {
      {"name", name}, {"singularName", singular}, {"namespaced", namespaced}, {"kind", kind}};
  r["verbs"] = std::move(verbs);
  if (!short_names.empty()) r["shortNames"] = std::move(short_names);
  if (!categories.empty()) r["categories"] = std::move(categories);
  return r;
}

// Subresources with a kind of another group.
OrderedJson eviction() {
  OrderedJson r = resource("pods/eviction", "", true, "Eviction", {"create"});
  r["group"] = "policy";
  r["version"] = "v1";
  return r;
}
OrderedJson scale() {
  OrderedJson r = resource("jobs/scale", "", true, "Scale", {"get", "patch", "update"});
  r["group"] = "autoscaling";
  r["version"] = "v1";
  return r;
}

OrderedJson resource_list(const char* group_version, std::vector<OrderedJson> resources) {
  OrderedJson list = {
      {"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", group_version}};
  list["resources"] = std::move(resources);
  return list;
}

OrderedJson group() {
  const OrderedJson version = {{"groupVersion", "batch/v1"}, {"version", "v1"}};
  OrderedJson json = {{"name", "batch"}};
  json["versions"] = OrderedJson::array({version});
  json["preferredVersion"] = version;
  return json;
}

OrderedJson query_parameter(const char* name) {
  return {{"name", name}, {"in", "query"}, {"schema", {{"type", "string"}, {"uniqueItems", true}}}};
}

// Just what kubectl looks for: the kinds, and that the operations know fieldValidation and dryRun.
OrderedJson openapi_batch() {
  const OrderedJson kind = {{"group", "batch"}, {"kind", "Job"}, {"version", "v1"}};
  auto operation = [&](const char* action) {
    OrderedJson op = {{"x-kubernetes-action", action}, {"x-kubernetes-group-version-kind", kind}};
    op["parameters"] =
        OrderedJson::array({query_parameter("dryRun"), query_parameter("fieldManager"),
                            query_parameter("fieldValidation")});
    op["responses"] = {{"200", {{"description", "OK"}}}};
    return op;
  };
  OrderedJson schema = {{"type", "object"},
                        {"description", "Job represents the configuration of a single job."}};
  schema["x-kubernetes-group-version-kind"] = OrderedJson::array({kind});
  OrderedJson doc = {{"openapi", "3.0.0"}, {"info", {{"title", "muster"}, {"version", "v1"}}}};
  doc["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs"]["post"] = operation("post");
  doc["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"] = operation("patch");
  doc["components"]["schemas"]["io.k8s.api.batch.v1.Job"] = schema;
  doc["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["put"] = operation("put");
  doc["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["delete"] = operation("delete");
  return doc;
}

std::string joined(const Url& url) {
  std::string path;
  for (const std::string& part : url.path) path += "/" + part;
  return path;
}

}  // namespace

std::optional<std::string> discovery(const Url& url, const std::string& version) {
  const std::string path = joined(url);
  if (path == "/version")
    return dumped({{"major", "1"},
                   {"minor", "32"},
                   {"gitVersion", "v1.32.0+muster." + version},
                   {"gitCommit", ""},
                   {"gitTreeState", ""},
                   {"buildDate", ""},
                   {"goVersion", ""},
                   {"compiler", ""},
                   {"platform", "linux"}});
  if (path == "/api") {
    OrderedJson json = {{"kind", "APIVersions"}};
    json["versions"] = OrderedJson::array({"v1"});
    json["serverAddressByClientCIDRs"] = OrderedJson::array();
    return dumped(json);
  }
  if (path == "/apis") {
    OrderedJson json = {{"kind", "APIGroupList"}, {"apiVersion", "v1"}};
    json["groups"] = OrderedJson::array({group()});
    return dumped(json);
  }
  if (path == "/apis/batch") {
    OrderedJson json = group();
    json["kind"] = "APIGroup";
    json["apiVersion"] = "v1";
    return dumped(json);
  }
  if (path == "/api/v1")
    return dumped(resource_list(
        "v1", {resource("pods", "pod", true, "Pod",
                        {"delete", "deletecollection", "get", "list", "patch", "update", "watch"},
                        {"po"}, {"all"}),
               eviction(), resource("pods/log", "", true, "Pod", {"get"}),
               resource("pods/status", "", true, "Pod", {"get", "patch", "update"}),
               resource("nodes", "node", false, "Node",
                        {"delete", "get", "list", "patch", "update", "watch"}, {"no"}),
               resource("events", "event", true, "Event", {"get", "list", "watch"}, {"ev"})}));
  if (path == "/apis/batch/v1")
    return dumped(resource_list(
        "batch/v1",
        {resource(
             "jobs", "job", true, "Job",
             {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
             {}, {"all"}),
         resource("jobs/status", "", true, "Job", {"get", "patch", "update"}), scale()}));
  if (path == "/openapi/v3") {
    OrderedJson json;
    json["paths"]["apis/batch/v1"]["serverRelativeURL"] =
        "/openapi/v3/apis/batch/v1?hash=" + version;
    return dumped(json);
  }
  if (path == "/openapi/v3/apis/batch/v1") return dumped(openapi_batch());
  return std::nullopt;
}

}  // namespace muster::api
