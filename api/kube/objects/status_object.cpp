#include "api/kube/objects/status_object.hpp"

#include <set>
#include <vector>

namespace muster::api {
namespace {

using nlohmann::json;

struct KindWords {
  const char* text;
  const char* reason;
};

KindWords kind_of(Violation::Kind kind) {
  switch (kind) {
    case Violation::Kind::required:
      return {"Required value", "FieldValueRequired"};
    case Violation::Kind::invalid:
      return {"Invalid value", "FieldValueInvalid"};
    case Violation::Kind::not_supported:
      return {"Unsupported value", "FieldValueNotSupported"};
    case Violation::Kind::duplicate:
      return {"Duplicate value", "FieldValueDuplicate"};
    case Violation::Kind::not_found:
      return {"Not found", "FieldValueNotFound"};
    case Violation::Kind::too_many:
      return {"Too many", "FieldValueTooMany"};
    case Violation::Kind::too_long:
      return {"Too long", "FieldValueTooLong"};
    case Violation::Kind::forbidden:
      return {"Forbidden", "FieldValueForbidden"};
  }
  MUSTER_CHECK(false, static_cast<int>(kind));
  return {};
}

// The text without the path. Object values are omitted, since they would bury the rule.
std::string body(const Violation& violation) {
  std::string text = kind_of(violation.kind).text;
  if (!violation.value.empty()) text += ": " + violation.value;
  if (!violation.detail.empty()) text += ": " + violation.detail;
  return text;
}

bool is_options(std::string_view resource) {
  return resource.ends_with("Options");
}

std::string kind_of_resource(std::string_view resource) {
  if (is_options(resource)) return std::string(resource);
  return resource == "pods"              ? "Pod"
         : resource == "nodes"           ? "Node"
         : resource == "leases"          ? "Lease"
         : resource == "events"          ? "Event"
         : resource == "configmaps"      ? "ConfigMap"
         : resource == "namespaces"      ? "Namespace"
         : resource == "cronjobs"        ? "CronJob"
         : resource == "queues"          ? "Queue"
         : resource == "priorityclasses" ? "PriorityClass"
                                         : "Job";
}

}  // namespace

std::string violation_text(const Violation& violation) {
  return violation.path + ": " + body(violation);
}

std::string_view group_of(std::string_view resource) {
  if (is_options(resource)) return resource == "PodLogOptions" ? "" : "meta.k8s.io";
  return resource == "jobs" || resource == "cronjobs" ? "batch"
         : resource == "leases"                       ? "coordination.k8s.io"
         : resource == "queues"                       ? "muster.dev"
         : resource == "priorityclasses"              ? "scheduling.k8s.io"
                                                      : "";
}

json violation_cause(const Violation& violation) {
  return {{"field", violation.path},
          {"reason", kind_of(violation.kind).reason},
          {"message", body(violation)}};
}

std::string invalid_message(std::string_view resource, std::string_view name, const Error& error) {
  std::vector<std::string> texts;
  std::set<std::string> seen;
  for (const Violation& violation : error.violations) {
    std::string text = violation_text(violation);
    if (seen.insert(text).second) texts.push_back(text);
  }
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  if (texts.size() > 1) joined = "[" + joined + "]";
  const std::string group(group_of(resource));
  return kind_of_resource(resource) + (group.empty() ? "" : "." + group) + " \"" +
         std::string(name) + "\" is invalid: " + joined;
}

json invalid_status(std::string_view resource, std::string_view name, const Error& error) {
  json causes = json::array();
  for (const Violation& violation : error.violations) causes.push_back(violation_cause(violation));
  json details = {{"name", name}, {"kind", kind_of_resource(resource)}, {"causes", causes}};
  if (const auto group = group_of(resource); !group.empty()) details["group"] = group;
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", json::object()},
          {"status", "Failure"},
          {"message", invalid_message(resource, name, error)},
          {"reason", "Invalid"},
          {"details", std::move(details)},
          {"code", 422}};
}

OrderedJson status_json(int code, std::string_view reason, std::string_view message,
                        OrderedJson details) {
  OrderedJson json = {
      {"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", OrderedJson::object()},
      {"status", "Failure"}, {"message", message}, {"reason", reason}};
  if (!details.is_null()) json["details"] = std::move(details);
  json["code"] = code;
  return json;
}

}  // namespace muster::api
