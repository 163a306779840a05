#include "api/fields.hpp"

#include "api/json_text.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

namespace muster::api {
namespace {

using nlohmann::json;

// type: fields, as name:type. Types: string, int32, int64, bool, quantity, any; []T a list, {}T a
// map; else a line here.
struct TypeRow {
  std::string_view name;
  std::string_view fields;
};
constexpr TypeRow kTypes[] = {
    {"Job", "apiVersion:string kind:string metadata:ObjectMeta spec:JobSpec status:any"},
    {"ObjectMeta",
     "name:string generateName:string namespace:string selfLink:string uid:string "
     "resourceVersion:string generation:int64 creationTimestamp:string deletionTimestamp:string "
     "deletionGracePeriodSeconds:int64 labels:{}string annotations:{}string ownerReferences:[]any "
     "finalizers:[]string managedFields:[]any"},
    {"JobSpec",
     "parallelism:int32 completions:int32 activeDeadlineSeconds:int64 "
     "podFailurePolicy:PodFailurePolicy successPolicy:SuccessPolicy backoffLimit:int32 "
     "backoffLimitPerIndex:int32 maxFailedIndexes:int32 selector:LabelSelector "
     "manualSelector:bool template:PodTemplateSpec ttlSecondsAfterFinished:int32 "
     "completionMode:string suspend:bool podReplacementPolicy:string managedBy:string "
     "scheduling:any"},
    {"StatusOfJob", "status:JobStatus"},
    {"JobStatus",
     "conditions:[]JobCondition startTime:string completionTime:string active:int32 "
     "succeeded:int32 failed:int32 terminating:int32 completedIndexes:string failedIndexes:string "
     "uncountedTerminatedPods:UncountedPods ready:int32"},
    {"JobCondition",
     "type:string status:string lastProbeTime:string lastTransitionTime:string reason:string "
     "message:string"},
    {"UncountedPods", "succeeded:[]string failed:[]string"},
    {"PodFailurePolicy", "rules:[]PodFailureRule"},
    {"PodFailureRule",
     "action:string onExitCodes:OnExitCodes onPodConditions:[]PodConditionPattern"},
    {"OnExitCodes", "containerName:string operator:string values:[]int32"},
    {"PodConditionPattern", "type:string status:string"},
    {"SuccessPolicy", "rules:[]SuccessRule"},
    {"SuccessRule", "succeededIndexes:string succeededCount:int32"},
    {"LabelSelector", "matchLabels:{}string matchExpressions:[]Requirement"},
    {"Requirement", "key:string operator:string values:[]string"},
    {"PodTemplateSpec", "metadata:ObjectMeta spec:PodSpec"},
    {"PodSpec",
     "volumes:[]any initContainers:[]Container containers:[]Container ephemeralContainers:[]any "
     "restartPolicy:string terminationGracePeriodSeconds:int64 activeDeadlineSeconds:int64 "
     "dnsPolicy:string nodeSelector:{}string serviceAccountName:string serviceAccount:string "
     "automountServiceAccountToken:bool nodeName:string hostNetwork:bool hostPID:bool hostIPC:bool "
     "shareProcessNamespace:bool securityContext:any imagePullSecrets:[]any hostname:string "
     "subdomain:string affinity:any schedulerName:string tolerations:[]Toleration "
     "hostAliases:[]any priorityClassName:string priority:int32 dnsConfig:any "
     "readinessGates:[]any runtimeClassName:string enableServiceLinks:bool "
     "preemptionPolicy:string overhead:{}quantity topologySpreadConstraints:[]any "
     "setHostnameAsFQDN:bool os:any hostUsers:bool schedulingGates:[]any resourceClaims:[]any "
     "resources:any hostnameOverride:string workloadRef:any schedulingGroup:any"},
    {"Container",
     "name:string image:string command:[]string args:[]string workingDir:string ports:[]any "
     "envFrom:[]any env:[]EnvVar resources:Resources resizePolicy:[]any restartPolicy:string "
     "restartPolicyRules:[]any volumeMounts:[]any volumeDevices:[]any livenessProbe:any "
     "readinessProbe:any startupProbe:any lifecycle:any terminationMessagePath:string "
     "terminationMessagePolicy:string imagePullPolicy:string securityContext:any stdin:bool "
     "stdinOnce:bool tty:bool"},
    {"EnvVar", "name:string value:string valueFrom:EnvVarSource"},
    {"EnvVarSource",
     "fieldRef:FieldRef resourceFieldRef:any configMapKeyRef:any secretKeyRef:any fileKeyRef:any"},
    {"FieldRef", "apiVersion:string fieldPath:string"},
    {"Resources", "limits:{}quantity requests:{}quantity claims:[]any"},
    {"Toleration", "key:string operator:string value:string effect:string tolerationSeconds:int64"},
    {"Node", "apiVersion:string kind:string metadata:ObjectMeta spec:NodeSpec status:any"},
    {"NodeSpec",
     "unschedulable:bool taints:[]Taint podCIDR:string podCIDRs:[]string providerID:string "
     "externalID:string configSource:any"},
    {"Taint", "key:string value:string effect:string timeAdded:string"},
    {"Lease", "apiVersion:string kind:string metadata:ObjectMeta spec:LeaseSpec"},
    {"LeaseSpec",
     "holderIdentity:string leaseDurationSeconds:int32 acquireTime:string renewTime:string "
     "leaseTransitions:int32"},
    {"Event",
     "apiVersion:string kind:string metadata:ObjectMeta involvedObject:ObjectReference "
     "reason:string message:string source:EventSource firstTimestamp:string lastTimestamp:string "
     "count:int32 type:string eventTime:string series:EventSeries action:string "
     "related:ObjectReference reportingComponent:string reportingInstance:string"},
    {"Event.events",
     "apiVersion:string kind:string metadata:ObjectMeta eventTime:string series:EventSeries "
     "reportingController:string reportingInstance:string action:string reason:string "
     "regarding:ObjectReference related:ObjectReference note:string type:string "
     "deprecatedSource:EventSource deprecatedFirstTimestamp:string "
     "deprecatedLastTimestamp:string deprecatedCount:int32"},
    {"EventSource", "component:string host:string"},
    {"EventSeries", "count:int32 lastObservedTime:string"},
    {"ObjectReference",
     "kind:string namespace:string name:string uid:string apiVersion:string "
     "resourceVersion:string fieldPath:string"},
};

using Fields = std::map<std::string_view, std::string_view>;

const Fields& fields_of(std::string_view type) {
  static const auto kParsed = [] {
    std::map<std::string_view, Fields> types;
    for (auto [name, text] : kTypes) {
      Fields& fields = types[name];
      while (!text.empty()) {
        std::string_view field = text.substr(0, text.find(' '));
        size_t colon = field.find(':');
        fields.emplace(field.substr(0, colon), field.substr(colon + 1));
        text.remove_prefix(std::min(text.size(), field.size() + 1));
      }
    }
    return types;
  }();
  auto it = kParsed.find(type);
  MUSTER_CHECK(it != kParsed.end(), type);
  return it->second;
}

void drop_nulls(json& value) {
  if (value.is_object())
    for (auto it = value.begin(); it != value.end();)
      it = it->is_null() ? value.erase(it) : std::next(it);
  if (value.is_structured())
    for (json& child : value) drop_nulls(child);
}

std::string found_text(const json& value) {
  constexpr size_t kShown = 60;  // characters
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_null()) return "null";
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  return (value.is_string() ? "the string " : value.is_number() ? "the number " : "") + text;
}

// Where the walk is. Its text is made only when something is wrong there.
struct Place {
  const Place* above = nullptr;
  enum class Kind { member, element, entry } kind = Kind::member;  // a.b, a[0], a[key]
  std::string_view name{};
  size_t index = 0;

  std::string text() const {
    const std::string before = above ? above->text() : "";
    if (kind == Kind::element) return before + "[" + std::to_string(index) + "]";
    if (kind == Kind::entry) return before + "[" + std::string(name) + "]";
    return name.empty() ? before : join_path(before, name);
  }
};

class Walk {
 public:
  std::vector<std::string> unknown;
  std::string problem;  // the first wrong type

  void visit(json& value, std::string_view type, const Place& path) {
    if (!problem.empty()) return;
    if (type.starts_with("[]")) {
      if (!value.is_array()) return wrong(path, value, "a list");
      for (size_t i = 0; i < value.size(); ++i)
        visit(value[i], type.substr(2), {&path, Place::Kind::element, {}, i});
    } else if (type.starts_with("{}")) {
      if (!value.is_object()) return wrong(path, value, "a map");
      drop_own_nulls(value);
      for (auto it = value.begin(); it != value.end(); ++it)
        visit(*it, type.substr(2), {&path, Place::Kind::entry, it.key()});
    } else if (type == "any") {
      drop_nulls(value);
    } else if (type == "string") {
      if (!value.is_string()) wrong(path, value, "a string");
    } else if (type == "bool") {
      if (!value.is_boolean()) wrong(path, value, "true or false");
    } else if (type == "int32") {
      integer<int32_t>(value, path, "int32");
    } else if (type == "int64") {
      integer<int64_t>(value, path, "int64");
    } else if (type == "quantity") {
      if (value.is_number()) value = value.dump();
      if (!value.is_string()) wrong(path, value, "a quantity (a string or a number)");
    } else {
      object(value, type, path);
    }
  }

 private:
  void object(json& value, std::string_view type, const Place& path) {
    if (!value.is_object()) return wrong(path, value, "an object");
    drop_own_nulls(value);
    const Fields& fields = fields_of(type);
    for (auto it = value.begin(); it != value.end();) {
      auto field = fields.find(it.key());
      const Place at{&path, Place::Kind::member, it.key()};
      if (field == fields.end()) {
        if (unknown.size() < kDuplicatesMax) unknown.push_back(at.text());
        it = value.erase(it);
        continue;
      }
      visit(*it, field->second, at);
      ++it;
    }
  }

  template <class Int>
  void integer(const json& value, const Place& path, const char* type) {
    if (!value.is_number_integer())
      return wrong(path, value, std::string("an integer (") + type + ")");
    bool fits = value.is_number_unsigned()
                    ? value.get<uint64_t>() <= uint64_t{std::numeric_limits<Int>::max()}
                    : value.get<int64_t>() >= std::numeric_limits<Int>::min() &&
                          value.get<int64_t>() <= std::numeric_limits<Int>::max();
    if (!fits) problem = path.text() + ": " + value.dump() + " is out of range for " + type;
  }

  void wrong(const Place& place, const json& value, const std::string& expected) {
    const std::string path = place.text();
    problem = (path.empty() ? "the document" : path) + ": found " + found_text(value) +
              ", expected " + expected;
  }

  static void drop_own_nulls(json& value) {
    for (auto it = value.begin(); it != value.end();)
      it = it->is_null() ? value.erase(it) : std::next(it);
  }
};

}  // namespace

std::string_view field_type(std::string_view type, std::string_view field) {
  if (type == "string" || type == "bool" || type == "any" || type == "quantity" ||
      type.starts_with("int") || type.starts_with("[]") || type.starts_with("{}"))
    return {};
  const Fields& fields = fields_of(type);
  auto it = fields.find(field);
  return it == fields.end() ? std::string_view() : it->second;
}

Result<std::vector<std::string>> conform(json& value, std::string_view type) {
  Walk walk;
  walk.visit(value, type, {});
  if (!walk.problem.empty()) return Error{Errc::invalid, std::move(walk.problem), {}};
  return std::move(walk.unknown);
}

const std::map<std::string_view, std::string_view>& known_fields(std::string_view type) {
  return fields_of(type);
}

}  // namespace muster::api
