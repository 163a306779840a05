// No single request may hold up the API: attacks with copies, moves, keys, lists, aliases and
// managers. Counts are bounded. The time limits are at least twenty times the measured time, which
// is enough to tell n log n from n².
#include "api/kube/objects/manifest.hpp"
#include "api/kube/objects/status_object.hpp"
#include "api/kube/patch/json_patch.hpp"
#include "api/kube/patch/managed_fields.hpp"
#include "api/kube/patch/patch.hpp"
#include "api/kube/schema/fields.hpp"
#include "api/kube/schema/protobuf.hpp"
#include "api/request/body.hpp"
#include "api/request/write_options.hpp"
#include "api/view/query/object_json.hpp"
#include "api/view/render/job_text.hpp"
#include "api/view/render/pod_json.hpp"
#include "base/text/json_text.hpp"
#include "base/text/yaml.hpp"
#include "tests/unit/api/admit.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace muster::api {
namespace {

using nlohmann::json;

// Fails the test if its scope takes longer than `most`.
class Within {
 public:
  explicit Within(std::chrono::milliseconds most) : most_(most) {}
  ~Within() {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began_);
    ::testing::Test::RecordProperty("ms", static_cast<int>(took.count()));
    if (getenv("MUSTER_TIMES"))
      printf("%s: %d ms\n", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
             static_cast<int>(took.count()));
    EXPECT_LT(took.count(), most_.count());
  }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  std::chrono::milliseconds most_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// About twenty times what an idle core takes, and far below what quadratic algorithms took.
#ifdef __SANITIZE_ADDRESS__
constexpr std::chrono::milliseconds kMost{40'000};
#else
constexpr std::chrono::milliseconds kMost{4'000};
#endif

json job(const json& spec = json::object()) {
  json document = {{"apiVersion", "batch/v1"},
                   {"kind", "Job"},
                   {"metadata", {{"name", "j"}, {"namespace", "default"}}},
                   {"spec", spec}};
  document["spec"]["template"]["spec"] = {
      {"restartPolicy", "Never"}, {"containers", {{{"name", "main"}, {"command", {"true"}}}}}};
  return document;
}

std::string refused(PatchType type, const json& base, const json& patch) {
  auto patched = apply_patch(type, base, patch);
  EXPECT_FALSE(patched.ok());
  return patched.ok() ? "" : patched.error().message;
}

json operation(const char* op, const std::string& path, const std::string& from) {
  return {{"op", op}, {"path", path}, {"from", from}};
}

TEST(P04OneRequest, JsonPatchCopiesAreBounded) {
  Within within(kMost);
  json patch = json::array({{{"op", "add"}, {"path", "/a"}, {"value", {{"x", "0123456789"}}}}});
  for (int i = 0; i < 60; ++i) patch.push_back(operation("copy", "/a/" + std::to_string(i), "/a"));
  EXPECT_EQ(refused(PatchType::json, json::object(), patch),
            "the JSON patch can't be applied: it copies more than 3145728 bytes");
  // Copies of a value count each time; a value nested by moves is refused for its depth.
  patch = {{{"op", "add"}, {"path", "/a"}, {"value", std::string(1 << 20, 'x')}}};
  for (int i = 0; i < 4; ++i) patch.push_back(operation("copy", "/b" + std::to_string(i), "/a"));
  EXPECT_NE(refused(PatchType::json, json::object(), patch).find("it copies more"),
            std::string::npos);
  patch = {{{"op", "add"}, {"path", "/a"}, {"value", json::object()}}};
  for (int i = 0; i < 200; ++i) {
    patch.push_back(operation("move", "/b", "/a"));
    patch.push_back({{"op", "add"}, {"path", "/a"}, {"value", json::object()}});
    patch.push_back(operation("move", "/a/b", "/b"));
  }
  EXPECT_NE(refused(PatchType::json, json::object(), patch).find("it nests deeper"),
            std::string::npos);
}

TEST(P04OneRequest, JsonPatchMovesAreCheapAndListShiftsBounded) {
  json base = {{"big", std::string(1 << 20, 'x')}, {"list", json::array()}};
  for (int i = 0; i < 100'000; ++i) base["list"].push_back(i);
  json patch = json::array();
  for (int i = 0; i < 10'000; ++i)
    patch.push_back(i % 2 == 0 ? operation("move", "/there", "/big")
                               : operation("move", "/big", "/there"));
  {
    Within within(kMost);
    EXPECT_TRUE(apply_patch(PatchType::json, base, patch).ok()) << "moves copy nothing";
  }
  patch.push_back(operation("move", "/there", "/big"));
  EXPECT_EQ(refused(PatchType::json, base, patch),
            "the JSON patch can't be applied: it has 10001 operations; at most 10000 are allowed");
  patch = json::array();
  for (int i = 0; i < 10'000; ++i) patch.push_back(operation("move", "/list/0", "/list/99999"));
  Within within(kMost);
  EXPECT_EQ(refused(PatchType::json, base, patch),
            "the JSON patch can't be applied: it shifts more than 2000000 list elements");
  auto beyond = apply_patch(PatchType::json, base, patch);
  EXPECT_EQ(beyond.error().violations.size(), 1u) << "a 422, not a 400";
}

TEST(P04OneRequest, JsonPatchOperationsFollowRfc) {
  const json base = json::parse(R"({"a":{"b":[1,2,3]},"~/":7,"n":null})");
  struct {
    const char* patch;
    const char* becomes;
  } rows[] = {
      {R"([{"op":"add","path":"/a/b/1","value":9}])", R"({"a":{"b":[1,9,2,3]},"~/":7,"n":null})"},
      {R"([{"op":"add","path":"/a/b/-","value":9}])", R"({"a":{"b":[1,2,3,9]},"~/":7,"n":null})"},
      {R"([{"op":"add","path":"/a/b/3","value":9}])", R"({"a":{"b":[1,2,3,9]},"~/":7,"n":null})"},
      {R"([{"op":"remove","path":"/a/b/0"}])", R"({"a":{"b":[2,3]},"~/":7,"n":null})"},
      {R"([{"op":"replace","path":"/~0~1","value":8}])", R"({"a":{"b":[1,2,3]},"~/":8,"n":null})"},
      {R"([{"op":"move","from":"/a/b","path":"/c"}])", R"({"a":{},"c":[1,2,3],"~/":7,"n":null})"},
      {R"([{"op":"move","from":"/a/b/0","path":"/a/b/2"}])",
       R"({"a":{"b":[2,3,1]},"~/":7,"n":null})"},
      {R"([{"op":"copy","from":"/a/b/0","path":"/a/c"}])",
       R"({"a":{"b":[1,2,3],"c":1},"~/":7,"n":null})"},
      {R"([{"op":"test","path":"/n","value":null},{"op":"remove","path":"/n"}])",
       R"({"a":{"b":[1,2,3]},"~/":7})"},
      {R"([{"op":"replace","path":"","value":{"x":1}}])", R"({"x":1})"},
      {"[]", R"({"a":{"b":[1,2,3]},"~/":7,"n":null})"},
  };
  for (auto [patch, becomes] : rows) {
    auto patched = apply_patch(PatchType::json, base, json::parse(patch));
    ASSERT_TRUE(patched.ok()) << patch << ": " << patched.error().message;
    EXPECT_EQ(*patched, json::parse(becomes)) << patch;
  }
  for (const char* patch :
       {R"({})", R"([7])", R"([{"op":"add"}])", R"([{"op":"add","path":"/x"}])",
        R"([{"op":"add","path":"x","value":1}])", R"([{"op":"add","path":"/~2","value":1}])",
        R"([{"op":"add","path":"/a/b/4","value":1}])",
        R"([{"op":"add","path":"/a/b/01","value":1}])",
        R"([{"op":"add","path":"/a/b/x","value":1}])", R"([{"op":"add","path":"/x/y","value":1}])",
        R"([{"op":"remove","path":"/a/b/3"}])", R"([{"op":"remove","path":"/a/b/-"}])",
        R"([{"op":"remove","path":""}])", R"([{"op":"replace","path":"/x","value":1}])",
        R"([{"op":"test","path":"/a/b/0","value":2}])", R"([{"op":"move","path":"/x"}])",
        R"([{"op":"move","from":"/a","path":"/a/c"}])",
        R"([{"op":"copy","from":"/x","path":"/y"}])", R"([{"op":"jump","path":"/a"}])"})
    EXPECT_FALSE(apply_patch(PatchType::json, base, json::parse(patch)).ok()) << patch;
}

TEST(P04OneRequest, StrategicPatchOfLongListsIsFast) {
  json base = job(), patch;
  json& env = base["spec"]["template"]["spec"]["containers"][0]["env"];
  json many = json::array();
  for (int i = 0; i < 60'000; ++i) {
    const std::string name = "V" + std::to_string(i);
    env.push_back({{"name", name}, {"value", "a"}});
    many.push_back({{"name", "V" + std::to_string(59'999 - i)}, {"value", "b"}});
    patch["metadata"]["finalizers"].push_back("example.com/" + std::to_string(i));
    patch["metadata"]["finalizers"].push_back("example.com/b" + std::to_string(i));
    patch["metadata"]["$deleteFromPrimitiveList/owners"].push_back(i);
    base["metadata"]["owners"].push_back(i);
  }
  patch["spec"]["template"]["spec"]["containers"] = {{{"name", "main"}, {"env", many}}};
  Within within(10 * kMost);
  auto merged = apply_patch(PatchType::strategic, base, patch);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ((*merged)["metadata"]["finalizers"].size(), 120'000u);
  EXPECT_EQ((*merged)["metadata"]["owners"].size(), 0u);
  const json& after = (*merged)["spec"]["template"]["spec"]["containers"][0]["env"];
  ASSERT_EQ(after.size(), 60'000u);
  EXPECT_EQ(after[0], json({{"name", "V0"}, {"value", "b"}})) << "in the place where it was";
}

TEST(P04OneRequest, FinalizersAreBounded) {
  json document = job();
  for (size_t i = 0; i <= 256; ++i)
    document["metadata"]["finalizers"].push_back("example.com/" + std::to_string(i));
  auto parsed = parse_job(document.dump(), FieldValidation::strict);
  ASSERT_TRUE(parsed.ok());
  auto admitted = admit_job(std::move(*parsed), {"default", "u", 0, "abcde"});
  ASSERT_FALSE(admitted.ok());
  ASSERT_EQ(admitted.error().violations.size(), 1u);
  EXPECT_EQ(violation_text(admitted.error().violations[0]),
            "metadata.finalizers: Too many: 257: must have at most 256 items");
}

TEST(P04OneRequest, AnswerNamesAtMostHundredViolations) {
  json document = job();
  json& containers = document["spec"]["template"]["spec"]["containers"];
  for (int i = 0; i < 1000; ++i) {
    containers.push_back({{"name", "n" + std::to_string(i)}, {"env", {{{"name", "="}}}}});
    document["spec"]["podFailurePolicy"]["rules"].push_back(
        {{"action", "FailJob"},
         {"onExitCodes", {{"containerName", "nobody"}, {"operator", "In"}, {"values", {1}}}}});
  }
  Within within(kMost);
  auto parsed = parse_job(document.dump(), FieldValidation::strict);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  auto admitted = admit_job(std::move(*parsed), {"default", "u", 0, "abcde"});
  ASSERT_FALSE(admitted.ok());
  EXPECT_EQ(admitted.error().violations.size(), 100u);
  EXPECT_LT(invalid_status("jobs", "j", admitted.error()).dump().size(), 100'000u);
}

TEST(P04OneRequest, ValuesAndMembersAreBounded) {
  json members;
  for (int i = 0; i < 32'001; ++i) members["k" + std::to_string(i)] = 1;
  auto parsed = parse_json(members.dump());
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message, "not a JSON document: more than 32000 members");
  EXPECT_TRUE(parse_json(members.dump(), kNoLimits).ok()) << "what is stored is read";
  std::string list = "[0";
  for (int i = 0; i < 160'000; ++i) list += ",0";
  EXPECT_EQ(parse_json(list + "]").error().message, "not a JSON document: more than 160000 values");
  // Each duplicate member is reported with its full path.
  std::string twice = "{\"" + std::string(1 << 20, 'a') + "\":{\"b\":0";
  for (int i = 0; i < 5000; ++i) twice += ",\"b\":0";
  Within within(kMost);
  auto repeated = parse_json(twice + "}}");
  ASSERT_TRUE(repeated.ok());
  ASSERT_EQ(repeated->duplicates.size(), 100u);
}

TEST(P04OneRequest, YamlMergeKeysAndAliasesAreBounded) {
  // A map of many keys is merged many times into one that already has them.
  std::string keys, merges;
  for (int i = 0; i < 2000; ++i) keys += "k" + std::to_string(i) + ": 1,";
  for (int i = 0; i < 2000; ++i) merges += "*a,";
  const std::string text = "a: &a {" + keys + "}\nb: {<<: [" + merges + "]}\n";
  {
    Within within(kMost);
    auto documents = yaml_to_json(text);
    ASSERT_FALSE(documents.ok());
    EXPECT_NE(documents.error().message.find("too large"), std::string::npos);
  }
  // A map with many keys, as a client may send it.
  keys = "";
  for (int i = 0; i < 40'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  Within within(10 * kMost);  // the library alone takes half a second
  EXPECT_TRUE(yaml_to_json(keys).ok());
  auto body = body_json(keys, "application/yaml");
  ASSERT_FALSE(body.ok());
  EXPECT_NE(body.error().message.find("send JSON"), std::string::npos);
  EXPECT_TRUE(body_json("a: 1", "application/yaml").ok());
  EXPECT_FALSE(body_json("a: [" + std::string(6000, ',') + "]", "application/yaml").ok());
}

// 30,000 finalizers, all owned by one manager, as an earlier version may have stored them.
core::JobObjectPtr poisonous() {
  json document = job();
  json fields;
  for (int i = 0; i < 30'000; ++i) {
    const std::string name = "example.com/" + std::to_string(i);
    document["metadata"]["finalizers"].push_back(name);
    document["metadata"]["labels"]["l" + std::to_string(i)] = "v";
    document["spec"]["template"]["metadata"]["labels"]["l" + std::to_string(i)] = "v";
    fields["f:metadata"]["f:finalizers"]["v:\"" + name + "\""] = json::object();
  }
  document["metadata"]["uid"] = "u";
  document["metadata"]["managedFields"] = {{{"manager", "m"},
                                            {"operation", "Update"},
                                            {"fieldsType", "FieldsV1"},
                                            {"fieldsV1", fields}}};
  return load_job(document.dump());
}

TEST(P04OneRequest, StoredJobAboveBoundsCanBeReadAndRepaired) {
  const core::JobObjectPtr object = poisonous();
  const core::Job stored(1, object);
  {
    Within within(10 * kMost);
    const std::string shown = dumped(job_json(stored, 7));
    EXPECT_GT(shown.size(), object->json.size());
    EXPECT_EQ(Json::parse(shown)["metadata"]["finalizers"].size(), 30'000u);
    PodWriter writer(object);
  }
  // The object can be repaired.
  Within within(10 * kMost);
  json base = json::parse(object->json);
  auto patched = apply_patch(PatchType::merge, base,
                             {{"metadata", {{"finalizers", nullptr}, {"labels", nullptr}}}});
  ASSERT_TRUE(patched.ok());
  auto parsed = parse_job(JsonText{*patched, {}}, FieldValidation::strict);
  ASSERT_TRUE(parsed.ok());
  json after = parsed->document;
  track_update("Job", base, after, {"me", "batch/v1", "2026-03-01T12:00:00Z", ""});
  EXPECT_FALSE(after["metadata"].contains("finalizers"));
}

TEST(P04OneRequest, ManagedFieldsOfDeepAndWideObjectAreFast) {
  const Writer writer{"me", "batch/v1", "2026-03-01T12:00:00Z", ""};
  json before = job(), after = job();
  // The deepest object allowed, with the most members allowed at the bottom.
  json* at = &after["spec"]["template"]["spec"]["dnsConfig"];
  for (int i = 0; i < 100; ++i) at = &(*at)["d"];
  for (int i = 0; i < 20'000; ++i) (*at)["k" + std::to_string(i)] = 1;
  {
    Within within(10 * kMost);
    track_update("Job", before, after, writer);
    json again = after;
    (*at)["k0"] = 2;
    track_update("Job", again, after, {"other", "batch/v1", "2026-03-01T12:00:01Z", ""});
    auto conflict =
        applied("Job", after, again, {"third", "batch/v1", "2026-03-01T12:00:02Z", ""}, false);
    EXPECT_FALSE(conflict.ok());
  }
  // Managers listed by a client.
  for (int i = 0; i < 16'000; ++i)
    before["metadata"]["managedFields"].push_back(
        {{"manager", "m" + std::to_string(i)}, {"operation", "Update"}});
  Within within(kMost);
  EXPECT_EQ(read_managers(before)->size(), 16'000u);
  // An annotation nested more deeply than the stack allows.
  json live = job(), wanted = job();
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(100'000, '}');
  live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = deep;
  EXPECT_TRUE(
      applied("Job", live, wanted, {"kubectl", "batch/v1", "2026-03-01T12:00:02Z", ""}, true).ok());
  EXPECT_FALSE(
      from_fields_v1({{"k:{\"a\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}",
                       json::object()}})
          .has_value());
}

TEST(P04OneRequest, WriteOfLargestBodyPassesEachStep) {
  // Every step of a write, at the largest size allowed. MUSTER_TIMES prints the total.
  json document = job();
  json& env = document["spec"]["template"]["spec"]["containers"][0]["env"];
  for (int i = 0; i < 3000; ++i)
    env.push_back({{"name", "V" + std::to_string(i)}, {"value", "some value"}});
  const std::string text = document.dump();
  auto step = [last = std::chrono::steady_clock::now()](const char* name) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (getenv("MUSTER_TIMES"))
      printf("  %s: %.1f ms\n", name,
             std::chrono::duration<double, std::milli>(now - last).count());
    last = std::chrono::steady_clock::now();
  };
  Within within(2 * kMost);
  auto parsed = parse_job(text, FieldValidation::strict);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  step("parse_job");
  const json said = parsed->document;
  auto admitted = admit_job(std::move(*parsed), {"default", "u", 0, "abcde"});
  ASSERT_TRUE(admitted.ok()) << admitted.error().message;
  step("admit_job");
  json after = json::parse((*admitted)->json);
  step("parse");
  track_update("Job", json::object(), after, {"me", "batch/v1", "2026-03-01T12:00:00Z", ""});
  step("track_update");
  const std::string stored = after.dump();
  step("dump");
  const core::JobObjectPtr object = load_job(stored);
  step("load_job");
  const std::string shown = dumped(job_json(core::Job(1, object), 7));
  step("show");
  auto patched = apply_patch(PatchType::strategic, after, document);
  step("strategic");
  ASSERT_TRUE(patched.ok());
  auto applies = applied("Job", after, said, {"x", "batch/v1", "2026-03-01T12:00:00Z", ""}, true);
  step("apply");
  ASSERT_TRUE(applies.ok());
}

}  // namespace
}  // namespace muster::api
