#include "api/kube/objects/canonical.hpp"

#include "api/kube/schema/api_types.hpp"
#include "base/check.hpp"

#include <iterator>
#include <string>
#include <string_view>

namespace muster::api {
namespace {

// Whether Kubernetes' types cannot tell this value from an absent one.
bool is_absent(const ApiField& field, const Json& value) {
  if (field.list || field.map) return value.is_structured() && value.empty();
  if (field.plain) return value == Json(0) || value == Json(false);
  return field.of == nullptr && field.type != "any" && value == "";
}

Json value_of(const ApiField& field) {
  const std::string text(field.preset);
  if (text == "{}") return Json::object();
  const bool number = field.type == "int32" || field.type == "int64";
  return number ? Json(std::stoll(text)) : Json(text);
}

void settle(Json& object, const ApiType& type);

void settle_inner(Json& value, const ApiField& field) {
  if (field.of == nullptr) return;
  if (!field.list && !field.map) return settle(value, *field.of);
  if (value.is_structured())
    for (Json& item : value) settle(item, *field.of);
}

void settle(Json& object, const ApiType& type) {
  if (!object.is_object()) return;
  for (const ApiField& field : type.fields) {
    auto found = object.find(field.name);
    if (found != object.end() && is_absent(field, *found)) {
      object.erase(found);
      found = object.end();
    }
    if (found == object.end()) {
      if (field.preset.empty()) continue;
      found = object.emplace(field.name, value_of(field)).first;
    }
    settle_inner(*found, field);
  }
}

// The tag of an image, without a digest.
std::string_view tag_of(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t colon = image.rfind(':');
  if (colon == std::string_view::npos || image.find('/', colon) != std::string_view::npos)
    return {};
  return image.substr(colon + 1);
}

// Kubernetes pulls an image again if its tag, or none, means the newest one.
void set_pull_policy(Json& container) {
  const std::string image = member_text(container, "image");
  if (image.empty() || container.contains("imagePullPolicy")) return;
  const std::string_view tag = tag_of(image);
  const bool digest = image.find('@') != std::string::npos;
  container["imagePullPolicy"] =
      tag == "latest" || (tag.empty() && !digest) ? "Always" : "IfNotPresent";
}

// Two names of one field.
void set_service_account(Json& pod) {
  for (const auto& [from, to] : {std::pair("serviceAccountName", "serviceAccount"),
                                 std::pair("serviceAccount", "serviceAccountName")})
    if (pod.contains(from) && !pod.contains(to)) pod[to] = pod[from];
}

}  // namespace

void make_canonical(Json& pod_template) {
  static const ApiType* const kTemplate = api_type("PodTemplateSpec");
  MUSTER_CHECK(kTemplate != nullptr);
  if (!pod_template.is_object()) return;
  settle(pod_template, *kTemplate);
  const auto spec = pod_template.find("spec");
  if (spec == pod_template.end() || !spec->is_object()) return;
  set_service_account(*spec);
  for (const char* list : {"containers", "initContainers"})
    if (auto found = spec->find(list); found != spec->end())
      for (Json& container : *found)
        if (container.is_object()) set_pull_policy(container);
  if (auto volumes = spec->find("volumes"); volumes != spec->end())
    for (Json& volume : *volumes)
      if (volume.is_object() && volume.size() == volume.count("name"))
        volume["emptyDir"] = Json::object();
}

void make_metadata_canonical(Json& object) {
  static const ApiType* const kMeta = api_type("ObjectMeta");
  MUSTER_CHECK(kMeta != nullptr);
  if (auto found = object.find("metadata"); found != object.end()) settle(*found, *kMeta);
}

}  // namespace muster::api
