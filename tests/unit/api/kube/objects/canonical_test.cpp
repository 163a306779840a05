// Equivalent spellings of a template have one form, and different templates do not.
#include "api/kube/objects/canonical.hpp"

#include "api/kube/schema/fields.hpp"
#include "tests/unit/api/kube/random_object.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace muster::api {
namespace {

Json canonical(Json pod_template) {
  const auto unknown = conform(pod_template, "PodTemplateSpec");
  EXPECT_TRUE(unknown.ok()) << unknown.error().message;
  make_canonical(pod_template);
  return pod_template;
}

Json of_container(const char* container) {
  return canonical({{"spec", {{"containers", Json::array({Json::parse(container)})}}}});
}

TEST(Canonical, HasTheDefaultsOfKubernetes) {
  const Json made = canonical(Json::parse(R"({"metadata": {"creationTimestamp": null}, "spec": {
      "restartPolicy": "Never", "serviceAccountName": "lab", "volumes": [{"name": "v"},
        {"name": "c", "configMap": {"name": "m"}}],
      "containers": [{"name": "a", "image": "x:1", "ports": [{"containerPort": 80}],
        "env": [{"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]}})"));
  EXPECT_EQ(made, Json::parse(R"({"metadata": {}, "spec": {
      "restartPolicy": "Never", "serviceAccountName": "lab", "serviceAccount": "lab",
      "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {},
      "terminationGracePeriodSeconds": 30,
      "volumes": [{"name": "v", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "m", "defaultMode": 420}}],
      "containers": [{"name": "a", "image": "x:1", "imagePullPolicy": "IfNotPresent",
        "resources": {}, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File", "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": "E", "valueFrom":
          {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}]}]}})"))
      << made.dump(1);
}

TEST(Canonical, ImagesThatMayChangeArePulled) {
  struct {
    const char *image, *policy;
  } rows[] = {{"busybox", "Always"},
              {"busybox:latest", "Always"},
              {"registry:5000/busybox", "Always"},
              {"busybox:1.36", "IfNotPresent"},
              {"registry:5000/busybox:1", "IfNotPresent"},
              {"busybox@sha256:abc", "IfNotPresent"}};
  for (const auto& [image, policy] : rows) {
    Json pod = {{"spec", {{"containers", {{{"name", "a"}, {"image", image}}}}}}};
    EXPECT_EQ(canonical(pod)["spec"]["containers"][0]["imagePullPolicy"], policy) << image;
  }
}

TEST(Canonical, SpellingsOfOneValueAreEqual) {
  const char* const same[][2] = {
      {R"({"resources": {"requests": {"cpu": "0.5"}}})",
       R"({"resources": {"requests": {"cpu": "500m"}}})"},
      {R"({"resources": {"limits": {"memory": "1024Mi"}}})",
       R"({"resources": {"limits": {"memory": "1Gi"}}})"},
      {R"({"resources": {"limits": {"cpu": 2}}})",
       R"({"resources": {"limits": {"cpu": "2000m"}}})"},
      {R"({"resources": {}})", R"({})"},
      {R"({"stdin": false, "tty": false})", R"({})"},
      {R"({"env": [], "args": [], "volumeMounts": []})", R"({})"},
      {R"({"env": [{"name": "A", "value": ""}]})", R"({"env": [{"name": "A"}]})"},
      {R"({"terminationMessagePath": "/dev/termination-log"})", R"({})"},
      {R"({"ports": [{"containerPort": 1, "protocol": "TCP", "hostPort": 0}]})",
       R"({"ports": [{"containerPort": 1}]})"},
      {R"({"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": false, "subPath": ""}]})",
       R"({"volumeMounts": [{"name": "v", "mountPath": "/v"}]})"},
  };
  for (const auto& [a, b] : same) EXPECT_EQ(of_container(a), of_container(b)) << a;
  const char* const different[][2] = {
      {R"({"resources": {"requests": {"cpu": "0.5"}}})",
       R"({"resources": {"requests": {"cpu": "501m"}}})"},
      {R"({"stdin": true})", R"({})"},
      {R"({"args": [""]})", R"({})"},
      {R"({"securityContext": {"runAsUser": 0}})", R"({"securityContext": {}})"},
      {R"({"securityContext": {"privileged": false}})", R"({"securityContext": {}})"},
      {R"({"env": [{"name": "A", "value": "0.5"}]})",
       R"({"env": [{"name": "A", "value": "500m"}]})"},
  };
  for (const auto& [a, b] : different) EXPECT_NE(of_container(a), of_container(b)) << a;
}

TEST(Canonical, EmptyMetadataIsNone) {
  Json object = {{"metadata",
                  {{"name", "a"},
                   {"annotations", Json::object()},
                   {"labels", {{"a", ""}}},
                   {"finalizers", Json::array()}}}};
  make_metadata_canonical(object);
  EXPECT_EQ(object, Json({{"metadata", {{"name", "a"}, {"labels", {{"a", ""}}}}}}));
  Json none = Json::object();
  make_metadata_canonical(none);
  EXPECT_EQ(none, Json::object());
}

// Writes out some of what may be left out, and leaves out some of what need not be written.
class Respelling {
 public:
  explicit Respelling(testing::RandomObject& random) : random_(random) {}

  void object(Json& json, const ApiType& type) {
    for (const ApiField& field : type.fields) {
      auto found = json.find(field.name);
      if (found == json.end()) {
        if (random_.chance(2)) write_out(json, field);
        continue;
      }
      if (field.type == "quantity") each(*found, field, [](Json& text) { text = other(text); });
      if (field.of != nullptr) each(*found, field, [&](Json& one) { object(one, *field.of); });
    }
  }

 private:
  static void each(Json& value, const ApiField& field, const std::function<void(Json&)>& f) {
    if (!field.list && !field.map) return f(value);
    for (Json& one : value) f(one);
  }

  void write_out(Json& json, const ApiField& field) {
    if (field.number == 0 || field.type == "any") return;
    if (!field.preset.empty()) {
      json[field.name] = field.preset == "{}"            ? Json::object()
                         : field.type.starts_with("int") ? Json::parse(field.preset)
                                                         : Json(field.preset);
    } else if (field.list) {
      json[field.name] = Json::array();
    } else if (field.map) {
      json[field.name] = Json::object();
    } else if (field.plain) {
      json[field.name] = field.type == "bool" ? Json(false) : Json(0);
    } else if (field.type == "string") {
      json[field.name] = "";
    }
  }

  static std::string other(const std::string& quantity) {
    if (quantity == "1") return "1000m";
    if (quantity == "500m") return "0.5";
    if (quantity == "1Gi") return "1024Mi";
    if (quantity == "1536Mi") return "1.5Gi";
    if (quantity == "2k") return "2000";
    if (quantity == "100n") return "0.1u";
    return "1000e0";
  }

  testing::RandomObject& random_;
};

// Changes one value, the `nth` of the plain ones; false: there are fewer.
bool change(Json& value, size_t& nth) {
  if (value.is_structured()) {
    for (Json& one : value)
      if (change(one, nth)) return true;
    return false;
  }
  if (nth-- != 0) return false;
  if (value.is_boolean())
    value = !value.get<bool>();
  else if (value.is_number())
    value = value.get<int64_t>() + 1;
  else
    value = value.get<std::string>() + "7";
  return true;
}

TEST(Canonical, RespelledTemplatesAreEqualAndChangedOnesAreNot) {
  const ApiType& type = *api_type("PodTemplateSpec");
  size_t fields = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    testing::RandomObject random(seed);
    const Json made = random.of(type);
    Json respelled = made;
    Respelling(random).object(respelled, type);
    Json once = made;
    make_canonical(once);
    Json twice = once;
    make_canonical(twice);
    ASSERT_EQ(once, twice) << made.dump(1);
    Json other = respelled;
    ASSERT_TRUE(conform(other, "PodTemplateSpec").ok()) << respelled.dump(1);
    make_canonical(other);
    ASSERT_EQ(once, other) << made.dump(1) << respelled.dump(1);
    fields += made.dump().size();
    for (size_t n = 0; n < 20; ++n) {
      Json changed = made;
      size_t nth = n;
      if (!change(changed, nth)) break;
      make_canonical(changed);
      EXPECT_NE(once, changed) << made.dump(1) << n;
    }
  }
  EXPECT_GT(fields, 100'000u);
}

}  // namespace
}  // namespace muster::api
