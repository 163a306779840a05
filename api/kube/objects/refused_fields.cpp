#include "api/kube/objects/refused_fields.hpp"

#include "api/kube/schema/api_types.hpp"
#include "base/check.hpp"
#include "base/text/json.hpp"
#include "base/text/json_text.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace muster::api {
namespace {

using nlohmann::json;

const json& pod_of(const json& job) {
  static const json kMissing = json::object();
  const json* pod = find_path(job, {"spec", "template", "spec"});
  return pod ? *pod : kMissing;
}

constexpr const char* kNotSupported = "not supported by this version of muster";

// Whether it is anything but an empty list, object or string.
bool written(const json& value) {
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.is_structured() || !value.empty();
}

bool is_refused(const ApiField& field, const json& value) {
  switch (field.use) {
    case ApiField::Use::acts:
    case ApiField::Use::kept:
    case ApiField::Use::refused_in_part:  // refused_fields() has the rule
      return false;
    case ApiField::Use::refused:
      return written(value);
    case ApiField::Use::refused_even_empty:
      return true;
    case ApiField::Use::refused_unless:
      return (value.is_string() ? value.get_ref<const std::string&>() : value.dump()) !=
             field.refused_unless;
  }
  return false;
}

void refuse(const std::string& path, const ApiField& field, core::Violations& found) {
  std::string why = kNotSupported;
  if (!field.hint.empty()) why += "; " + std::string(field.hint);
  found.forbidden(path, std::move(why));
}

// Checks the users, groups and filters of a securityContext, where marks cannot express the rule.
// Without an owner, the node checks the user (core/node/confinement.hpp).
class SecurityRules {
 public:
  SecurityRules(const json& context, const ApiType& type, std::string path,
                const std::optional<core::Owner>& owner, core::Violations& found)
      : context_(context), type_(type), path_(std::move(path)), owner_(owner), found_(found) {}

  void judge() {
    if (owner_) {
      must_be("runAsUser", owner_->uid);
      must_be("runAsGroup", owner_->gid);
      if (owner_->uid == 0 && context_.value("runAsNonRoot", false))
        found_.forbidden(path_ + ".runAsNonRoot", "the pods run as the job's owner, who is root");
    }
    if (const auto group = context_.find("fsGroup"); group != context_.end())
      if (!owner_ || *group != owner_->gid) refuse(path_ + ".fsGroup", field("fsGroup"), found_);
    if (const auto groups = context_.find("supplementalGroups"); groups != context_.end())
      if (std::any_of(groups->begin(), groups->end(),
                      [this](const json& gid) { return !is_of_owner(gid); }))
        refuse(path_ + ".supplementalGroups", field("supplementalGroups"), found_);
    for (const char* profile : {"seccompProfile", "appArmorProfile"}) {
      const auto wanted = context_.find(profile);
      if (wanted == context_.end()) continue;
      const std::string type = wanted->value("type", "");
      const std::string at = path_ + "." + profile + ".type";
      if (type.empty())
        found_.required(at);
      else if (type != "RuntimeDefault" && type != "Unconfined")
        refuse(at, *field(profile).of->field("type"), found_);
    }
  }

 private:
  const ApiField& field(const char* name) const {
    const ApiField* found = type_.field(name);
    MUSTER_CHECK(found != nullptr, name);
    return *found;
  }

  void must_be(const char* name, uint32_t id) {
    if (const auto wanted = context_.find(name); wanted != context_.end() && *wanted != id)
      found_.forbidden(path_ + "." + name,
                       "must be " + std::to_string(id) + ": pods run as the job's owner; omit it");
  }

  bool is_of_owner(const json& gid) const {
    return owner_ &&
           (gid == owner_->gid || std::any_of(owner_->groups.begin(), owner_->groups.end(),
                                              [&gid](uint32_t one) { return gid == one; }));
  }

  const json& context_;
  const ApiType& type_;
  const std::string path_;
  const std::optional<core::Owner>& owner_;
  core::Violations& found_;
};

// Only an init container has a policy of its own: Always, for a sidecar.
void refuse_restarts(const json& container, const std::string& path, bool init,
                     core::Violations& found) {
  const auto policy = container.find("restartPolicy");
  if (policy == container.end() || *policy == "" || (init && *policy == "Always")) return;
  refuse(path + ".restartPolicy", *api_type("Container")->field("restartPolicy"), found);
}

void refuse_security(const json& object, const char* type_name, const std::string& path,
                     const std::optional<core::Owner>& owner, core::Violations& found) {
  const auto context = object.find("securityContext");
  if (context == object.end()) return;
  const ApiType* type = api_type(type_name);
  MUSTER_CHECK(type != nullptr);
  SecurityRules(*context, *type, path + ".securityContext", owner, found).judge();
}

// Refuses all fields that the types mark as refused, in order.
void refuse_marked(const json& object, const ApiType& type, const std::string& path,
                   core::Violations& found) {
  for (const ApiField& field : type.fields) {
    auto it = object.find(field.name);
    if (it == object.end()) continue;
    const std::string at = join_path(path, field.name);
    if (is_refused(field, *it))
      refuse(at, field, found);
    else if (field.of == nullptr || field.unread)
      continue;
    else if (field.list)
      for (size_t i = 0; i < it->size(); ++i)
        refuse_marked((*it)[i], *field.of, at + "[" + std::to_string(i) + "]", found);
    else if (field.map)
      for (const auto& [key, value] : it->items())
        refuse_marked(value, *field.of, at + "[" + key + "]", found);
    else
      refuse_marked(*it, *field.of, at, found);
  }
}

}  // namespace

core::Violations refused_fields(const json& job, const std::optional<core::Owner>& owner) {
  core::Violations found;
  const ApiType* type = api_type("Job");
  MUSTER_CHECK(type != nullptr);
  refuse_marked(job, *type, "", found);
  const json& pod = pod_of(job);
  const std::string path = "spec.template.spec";
  refuse_security(pod, "PodSecurityContext", path, owner, found);
  for (const char* list : {"containers", "initContainers"}) {
    auto containers = pod.find(list);
    if (containers == pod.end()) continue;
    for (size_t i = 0; i < containers->size(); ++i) {
      const std::string at = core::item(path + "." + list, i);
      refuse_security((*containers)[i], "SecurityContext", at, owner, found);
      refuse_restarts((*containers)[i], at, std::string_view(list) == "initContainers", found);
    }
  }
  return found;
}

std::vector<std::string> ignored_preferences(const json& job) {
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  std::vector<std::string> warnings;
  const json& pod = pod_of(job);
  auto warn = [&warnings](const std::string& field) {
    warnings.push_back("spec.template.spec." + field +
                       ": stored and ignored; to spread or pack the pods of a job, use the "
                       "annotation muster.dev/placement");
  };
  for (const char* kind : {"podAffinity", "podAntiAffinity"})
    if (const json* rules = find_path(pod, {"affinity", kind, kPreferred});
        rules && written(*rules))
      warn("affinity." + std::string(kind) + "." + kPreferred);
  if (const json* spread = find_path(pod, {"topologySpreadConstraints"});
      spread && written(*spread))
    warn("topologySpreadConstraints");
  return warnings;
}

}  // namespace muster::api
