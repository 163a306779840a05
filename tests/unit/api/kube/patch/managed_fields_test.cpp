// Field ownership: field sets as text, merges by key, conflicts, and what an apply removes.
#include "api/kube/patch/managed_fields.hpp"

#include "api/kube/schema/fields.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using nlohmann::json;

json parse(std::string_view text) {
  json value = json::parse(text, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << text;
  return value;
}

FieldSet set_of(std::string_view text) {
  auto set = from_fields_v1(parse(text));
  EXPECT_TRUE(set.has_value()) << text;
  return set.value_or(FieldSet());
}

Writer by(const std::string& name, const std::string& now = "2023-11-14T22:13:20Z") {
  return {name, "batch/v1", now, ""};
}

// A Job with these containers and `more` in its spec.
json with_containers(std::string_view containers, std::string_view more = "{}") {
  json object = parse(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"}})");
  object["spec"] = parse(more);
  object["spec"]["template"]["spec"]["containers"] = parse(containers);
  return object;
}

std::vector<std::string> names(const json& object) {
  std::vector<std::string> found;
  const auto managers = read_managers(object);
  if (!managers) return found;
  for (const Manager& one : *managers)
    found.push_back(one.name + (one.applies ? "/Apply" : "/Update"));
  return found;
}

std::vector<std::string> paths_of(const json& object, const std::string& manager) {
  if (const auto managers = read_managers(object))
    for (const Manager& one : *managers)
      if (one.name == manager) return paths(one.fields);
  return {};
}

using Texts = std::vector<std::string>;

TEST(FieldSet, RoundTripsFieldsV1) {
  for (
      const char* text : {
          R"({})",
          R"({"f:spec":{"f:parallelism":{}}})",
          R"({"f:metadata":{"f:labels":{".":{},"f:a.b/c":{}}}})",
          R"({"f:spec":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}})",
          R"({"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}}}})",
      })
    EXPECT_EQ(to_fields_v1(set_of(text)), parse(text));
  EXPECT_EQ(
      paths(set_of(
          R"({"f:spec":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}},)"
          R"("f:metadata":{"f:finalizers":{"v:\"a/b\"":{}}}})")),
      (Texts{R"(.metadata.finalizers[="a/b"])", R"(.spec.ports[containerPort=80,protocol="TCP"])",
             R"(.spec.ports[containerPort=80,protocol="TCP"].name)"}));
}

TEST(FieldSet, RejectsMalformedFieldsV1) {
  for (const char* text :
       {R"(7)", R"([])", R"({"spec":{}})", R"({"f:spec":7})", R"({"k:{}":{}})", R"({"k:7":{}})",
        R"({"v:{":{}})", R"({".":7})", R"({"i:0":{}})", R"({"":{}})"})
    EXPECT_FALSE(from_fields_v1(parse(text)).has_value()) << text;
}

TEST(FieldSet, ComputesUnionIntersectionAndDifference) {
  const FieldSet a = set_of(R"({"f:a":{},"f:b":{".":{},"f:c":{}}})");
  const FieldSet b = set_of(R"({"f:b":{"f:c":{},"f:d":{}}})");
  EXPECT_EQ(paths(united(a, b)), (Texts{".a", ".b", ".b.c", ".b.d"}));
  EXPECT_EQ(paths(common(a, b)), (Texts{".b.c"}));
  EXPECT_EQ(paths(without(a, b)), (Texts{".a", ".b"}));
  EXPECT_TRUE(without(a, a).empty());
}

TEST(FieldSchema, OwnedPathsOfJobFollowItsSchema) {
  const FieldType job{"Job"};
  const json object = parse(R"({"metadata":{"labels":{"x":"1"},"finalizers":["f/a","f/b"]},"spec":{
      "selector":{"matchLabels":{"a":"b"}},"parallelism":2,
      "podFailurePolicy":{"rules":[{"action":"Ignore"}]},
      "template":{"spec":{"nodeSelector":{"zone":"a"},"tolerations":[{"key":"k"}],
        "containers":[{"name":"main","command":["a","b"],"env":[{"name":"X","value":"1"}],
          "ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}]}}}})");
  EXPECT_EQ(
      paths(fields_of(job, object)),
      (Texts{
          R"(.metadata.finalizers[="f/a"])",
          R"(.metadata.finalizers[="f/b"])",
          ".metadata.labels.x",
          ".spec.parallelism",
          ".spec.podFailurePolicy.rules",
          ".spec.selector",
          R"(.spec.template.spec.containers[name="main"])",
          R"(.spec.template.spec.containers[name="main"].command)",
          R"(.spec.template.spec.containers[name="main"].env[name="X"])",
          R"(.spec.template.spec.containers[name="main"].env[name="X"].name)",
          R"(.spec.template.spec.containers[name="main"].env[name="X"].value)",
          R"(.spec.template.spec.containers[name="main"].name)",
          R"(.spec.template.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"])",
          R"(.spec.template.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"].containerPort)",
          R"(.spec.template.spec.containers[name="main"].resources.limits.cpu)",
          ".spec.template.spec.nodeSelector",
          ".spec.template.spec.tolerations",
      }));
}

TEST(FieldSchema, ListWithoutUniqueKeysIsAtomic) {
  const FieldType containers = FieldType{"PodSpec"}.member("containers");
  EXPECT_EQ(shape_of(containers, parse(R"([{"name":"a"},{"name":"b"}])")), Shape::keyed);
  EXPECT_EQ(shape_of(containers, parse(R"([{"name":"a"},{"name":"a"}])")), Shape::leaf);
  EXPECT_EQ(shape_of(containers, parse(R"([{"image":"a"}])")), Shape::leaf);
  EXPECT_EQ(shape_of(containers, parse(R"([7])")), Shape::leaf);
  EXPECT_EQ(shape_of(containers, parse(R"("text")")), Shape::leaf);
}

TEST(FieldSchema, MergedListKeepsElementsThatAreNotApplied) {
  struct Row {
    const char *live, *wanted, *merged;
  };
  const Row rows[] = {
      {R"(["a","b"])", R"(["c"])", R"(["a","b","c"])"},
      {R"(["a","b","c"])", R"(["c","a"])", R"(["c","a","b"])"},
      {R"([])", R"(["x","y"])", R"(["x","y"])"},
      {R"(["a","b"])", R"(["a","x","b"])", R"(["a","x","b"])"},
  };
  auto named = [](const char* text) {
    json list = json::array();
    for (const json& name : parse(text)) list.push_back({{"name", name}});
    return list;
  };
  const FieldType containers = FieldType{"PodSpec"}.member("containers");
  for (const Row& row : rows)
    EXPECT_EQ(merged(containers, named(row.live), named(row.wanted)), named(row.merged))
        << row.live << row.wanted;
}

TEST(Apply, CreatesObjectAndOwnsOnlyAppliedFields) {
  const json wanted = with_containers(R"([{"name":"main","image":"a"}])", R"({"parallelism":2})");
  const auto made = applied("Job", json::object(), wanted, by("me"), false);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)["spec"], wanted["spec"]);
  EXPECT_EQ((*made)["metadata"]["name"], "j");
  EXPECT_EQ(names(*made), Texts{"me/Apply"});
  EXPECT_EQ(paths_of(*made, "me"),
            (Texts{".spec.parallelism", R"(.spec.template.spec.containers[name="main"])",
                   R"(.spec.template.spec.containers[name="main"].image)",
                   R"(.spec.template.spec.containers[name="main"].name)"}));
}

TEST(Apply, ChangingFieldOfAnotherManagerConflictsUnlessForced) {
  json live = with_containers(R"([{"name":"main","image":"a"}])", R"({"parallelism":2})");
  track_update("Job", json::object(), live, by("maker"));
  const json same = with_containers(R"([{"name":"main"}])", R"({"parallelism":2})");
  auto shared = applied("Job", live, same, by("me"), false);
  ASSERT_TRUE(shared.ok()) << "the same value is shared";
  EXPECT_EQ(names(*shared), (Texts{"me/Apply", "maker/Update"}));
  EXPECT_EQ((*shared)["spec"], live["spec"]);

  const json other = with_containers(R"([{"name":"main"}])", R"({"parallelism":3})");
  auto refused = applied("Job", live, other, by("me"), false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_EQ(refused.error().message,
            R"(Apply failed with 1 conflict: conflict with "maker" using batch/v1: )"
            ".spec.parallelism");
  ASSERT_EQ(refused.error().violations.size(), 1u);
  EXPECT_EQ(refused.error().violations[0].path, ".spec.parallelism");
  EXPECT_EQ(refused.error().violations[0].detail, R"(conflict with "maker" using batch/v1)");

  const json more = with_containers(R"([{"name":"main","image":"b"}])", R"({"parallelism":3})");
  EXPECT_EQ(applied("Job", live, more, by("me"), false).error().message,
            "Apply failed with 2 conflicts: conflicts with \"maker\" using batch/v1:\n"
            "- .spec.parallelism\n"
            R"(- .spec.template.spec.containers[name="main"].image)");

  auto forced = applied("Job", live, other, by("me"), true);
  ASSERT_TRUE(forced.ok());
  EXPECT_EQ((*forced)["spec"]["parallelism"], 3);
  EXPECT_EQ((*forced)["spec"]["template"]["spec"]["containers"][0]["image"], "a");
  for (const std::string& path : paths_of(*forced, "maker")) EXPECT_NE(path, ".spec.parallelism");
}

TEST(Apply, OmittedFieldsAreRemovedUnlessAnotherManagerOwnsThem) {
  json live = json::object();
  auto apply = [&](const std::string& who, const json& wanted, bool force = false) {
    auto made = applied("Job", live, wanted, by(who), force);
    EXPECT_TRUE(made.ok()) << made.error().message;
    live = std::move(*made);
  };
  apply("a", with_containers(
                 R"([{"name":"one","image":"x","env":[{"name":"A"},{"name":"B"}]},{"name":"two"}])",
                 R"({"parallelism":2,"backoffLimit":4})"));
  apply("b", with_containers(R"([{"name":"two","image":"y"}])", R"({"backoffLimit":4})"));
  // Fields that the server filled in have no manager and stay.
  live["spec"]["suspend"] = false;
  apply("a", with_containers(R"([{"name":"one","env":[{"name":"B"}]}])"));
  EXPECT_EQ(live["spec"]["template"]["spec"]["containers"],
            parse(R"([{"name":"one","env":[{"name":"B"}]},{"name":"two","image":"y"}])"));
  EXPECT_FALSE(live["spec"].contains("parallelism"));
  EXPECT_EQ(live["spec"]["backoffLimit"], 4) << "b wants it too";
  EXPECT_EQ(live["spec"]["suspend"], false);
  apply("b", with_containers(R"([{"name":"one"}])"));
  EXPECT_FALSE(live["spec"].contains("backoffLimit"));
  EXPECT_EQ(live["spec"]["template"]["spec"]["containers"].size(), 1u) << "two was b's alone";
}

TEST(Apply, LabelsAreOwnedIndividually) {
  auto labelled = [](std::string_view labels) {
    json object = parse(R"({"metadata":{"name":"j"},"spec":{}})");
    object["metadata"]["labels"] = parse(labels);
    return object;
  };
  json live = *applied("Job", json::object(), labelled(R"({"a":"1","b":"1"})"), by("x"), false);
  live = *applied("Job", live, labelled(R"({"c":"1"})"), by("y"), false);
  live = *applied("Job", live, labelled(R"({"a":"2"})"), by("x"), false);
  EXPECT_EQ(live["metadata"]["labels"], parse(R"({"a":"2","c":"1"})"));
  live = *applied("Job", live, labelled("{}"), by("y"), false);
  EXPECT_EQ(live["metadata"]["labels"], parse(R"({"a":"2"})"));
}

TEST(Apply, RepeatedApplyChangesNothing) {
  const json wanted = with_containers(R"([{"name":"main"}])", R"({"parallelism":2})");
  const json first = *applied("Job", json::object(), wanted, by("me"), false);
  EXPECT_EQ(*applied("Job", first, wanted, by("me", "2024-01-01T00:00:00Z"), false), first)
      << "nor its time";
}

TEST(Apply, UnmanagedObjectConflictsWithBeforeFirstApply) {
  const json live = with_containers(R"([{"name":"main"}])", R"({"parallelism":2})");
  const json wanted = with_containers(R"([{"name":"main"}])", R"({"parallelism":3})");
  EXPECT_NE(
      applied("Job", live, wanted, by("me"), false).error().message.find("\"before-first-apply\""),
      std::string::npos);
}

TEST(Apply, KubectlTakesOverFromItsClientSideApply) {
  json live = with_containers(R"([{"name":"main"}])", R"({"parallelism":2})");
  json last = live;
  live["spec"]["suspend"] = true;
  live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = last.dump();
  track_update("Job", json::object(), live, by("kubectl-client-side-apply"));
  const json wanted = with_containers(R"([{"name":"main"}])", R"({"parallelism":3})");
  EXPECT_FALSE(applied("Job", live, wanted, by("somebody"), false).ok());
  auto taken = applied("Job", live, wanted, by("kubectl"), false);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ((*taken)["spec"]["parallelism"], 3);
  const json& note =
      (*taken)["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
  EXPECT_EQ(parse(note.get<std::string>())["spec"]["parallelism"], 3);
  json other = wanted;
  other["spec"]["suspend"] = false;
  EXPECT_FALSE(applied("Job", live, other, by("kubectl"), false).ok())
      << "fields it had not applied still belong to the other manager";
}

TEST(Track, UpdateOwnsOnlyFieldsItChanges) {
  json first = with_containers(R"([{"name":"main"}])", R"({"parallelism":2,"suspend":true})");
  track_update("Job", json::object(), first, by("maker"));
  json second = first;
  second["spec"]["parallelism"] = 3;
  second["spec"].erase("suspend");
  track_update("Job", first, second, by("scaler", "2024-01-01T00:00:00Z"));
  EXPECT_EQ(paths_of(second, "scaler"), Texts{".spec.parallelism"});
  const Texts left = paths_of(second, "maker");
  EXPECT_EQ(left, (Texts{R"(.spec.template.spec.containers[name="main"])",
                         R"(.spec.template.spec.containers[name="main"].name)"}));
  json third = second;
  track_update("Job", second, third, by("idler"));
  EXPECT_EQ(third, second) << "a writer that changes nothing owns nothing";
}

TEST(Track, ManagedFieldsFromClientAreAcceptedOnlyIfValid) {
  json first = with_containers(R"([{"name":"main"}])");
  track_update("Job", json::object(), first, by("maker"));
  auto after = [&](std::string_view managers) {
    json second = first;
    if (managers.empty())
      second["metadata"].erase("managedFields");
    else
      second["metadata"]["managedFields"] = parse(managers);
    second["spec"]["parallelism"] = 1;
    track_update("Job", first, second, by("me"));
    return names(second);
  };
  EXPECT_EQ(after(""), (Texts{"maker/Update", "me/Update"})) << "left out: as they were";
  EXPECT_EQ(after("[]"), (Texts{"maker/Update", "me/Update"}));
  EXPECT_EQ(after("[{}]"), (Texts{"me/Update"})) << "forgotten";
  EXPECT_EQ(after(R"([{"manager":"x","operation":"Apply","fieldsType":"FieldsV1",)"
                  R"("fieldsV1":{"f:spec":{"f:suspend":{}}}}])"),
            (Texts{"x/Apply", "me/Update"}));
  for (const char* nonsense :
       {"[7]", R"([{"manager":7}])", R"([{"manager":"x","operation":"Take"}])",
        R"([{"manager":"x","operation":"Apply","fieldsV1":{"spec":{}}}])"})
    EXPECT_EQ(after(nonsense), (Texts{"maker/Update", "me/Update"})) << nonsense;
}

TEST(Track, ManagersAreBounded) {
  json object = with_containers(R"([{"name":"main"}])");
  for (int i = 0; i < 30; ++i) {
    json next = object;
    next["metadata"]["labels"]["l" + std::to_string(i)] = "x";
    track_update("Job", object, next,
                 by("m" + std::to_string(i), "2024-01-01T00:00:" + std::to_string(10 + i) + "Z"));
    object = next;
  }
  const Texts updaters = names(object);
  EXPECT_EQ(updaters.size(), kUpdateManagersMax);
  EXPECT_EQ(updaters.back(), "m29/Update");
  EXPECT_EQ(paths_of(object, "ancient-changes").size(), 21u);

  for (size_t i = 0; i < kApplyManagersMax; ++i) {
    auto made = applied("Job", object, with_containers(R"([{"name":"main"}])"),
                        by("a" + std::to_string(i)), false);
    ASSERT_TRUE(made.ok()) << i << made.error().message;
    object = std::move(*made);
  }
  auto refused = applied("Job", object, with_containers(R"([{"name":"main"}])"), by("b"), false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::invalid);
}

}  // namespace
}  // namespace muster::api
