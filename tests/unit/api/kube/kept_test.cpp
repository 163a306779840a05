// Leases and events written by clients: reading, checks, JSON, lists and watches.
#include "api/kube/objects/kept_object.hpp"
#include "api/view/query/list_page.hpp"
#include "api/view/query/watch.hpp"
#include "api/view/render/render.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;
using ::testing::ElementsAre;

const NewKept kGiven{"uid-1", "abcde", 1'772'366'400'000};

KeptRequest request(core::KeptKind kind, EventWords words = EventWords::core_v1) {
  return {.kind = kind, .words = words, .ns = "default"};
}
Result<WrittenKept> read(const Json& json, const KeptRequest& how) {
  return new_kept(*parse_json(json.dump()), how, kGiven);
}
Json lease_json(const char* name = "lock") {
  return {{"metadata", {{"name", name}}},
          {"spec",
           {{"holderIdentity", "a"},
            {"leaseDurationSeconds", 15},
            {"renewTime", "2026-03-01T12:00:00.123456Z"}}}};
}
Json event_json_of(const char* name = "happened") {
  return {{"metadata", {{"name", name}}},
          {"involvedObject", {{"kind", "Job"}, {"namespace", "default"}, {"name", "rows"}}},
          {"reason", "Admitted"},
          {"message", "admitted by the quota"},
          {"type", "Normal"},
          {"lastTimestamp", "2026-03-01T12:00:00Z"},
          {"count", 2},
          {"source", {{"component", "quota"}}}};
}
// The paths of the violated rules, or the error message.
std::vector<std::string> broken(const Result<WrittenKept>& result) {
  std::vector<std::string> paths;
  if (result.ok()) return paths;
  for (const Violation& one : result.error().violations) paths.push_back(one.path);
  if (paths.empty()) paths.push_back("message: " + result.error().message);
  return paths;
}

TEST(P24Lease, IsKeptAsWrittenWithServerFieldsAdded) {
  const auto written = read(lease_json(), request(core::KeptKind::lease));
  ASSERT_TRUE(written.ok()) << written.error().message;
  const OrderedJson json = kept_json(written->kept, 42);
  EXPECT_EQ(json["apiVersion"], "coordination.k8s.io/v1");
  EXPECT_EQ(json["metadata"]["uid"], "uid-1");
  EXPECT_EQ(json["metadata"]["namespace"], "default");
  EXPECT_EQ(json["metadata"]["resourceVersion"], "42");
  EXPECT_EQ(json["metadata"]["creationTimestamp"], "2026-03-01T12:00:00Z");
  EXPECT_EQ(json["spec"]["renewTime"], "2026-03-01T12:00:00.123456Z");
}

TEST(P24Lease, ViolationNamesInvalidField) {
  auto with = [](const char* field, const Json& value) {
    Json json = lease_json();
    json["spec"][field] = value;
    return broken(read(json, request(core::KeptKind::lease)));
  };
  EXPECT_THAT(with("leaseDurationSeconds", 1), ElementsAre());
  EXPECT_THAT(with("leaseDurationSeconds", 0), ElementsAre("spec.leaseDurationSeconds"));
  EXPECT_THAT(with("leaseTransitions", 0), ElementsAre());
  EXPECT_THAT(with("leaseTransitions", -1), ElementsAre("spec.leaseTransitions"));
  EXPECT_THAT(with("holderIdentity", ""), ElementsAre("spec.holderIdentity"));
  EXPECT_THAT(with("renewTime", "noon"), ElementsAre("spec.renewTime"));
  EXPECT_THAT(with("leaseDurationSeconds", "x").front(), ::testing::HasSubstr("message: "));
  EXPECT_THAT(with("unheardOf", 1).front(), ::testing::HasSubstr("unknown field"));
  Json named = lease_json("Not_A_Name");
  EXPECT_THAT(broken(read(named, request(core::KeptKind::lease))), ElementsAre("metadata.name"));
  named = lease_json();
  named["metadata"]["namespace"] = "other";
  EXPECT_THAT(broken(read(named, request(core::KeptKind::lease))).front(),
              ::testing::HasSubstr("does not match the namespace of the request"));
  named["metadata"] = {{"generateName", "lock-"}};
  const auto generated = read(named, request(core::KeptKind::lease));
  ASSERT_TRUE(generated.ok());
  EXPECT_EQ(generated->kept.name, "lock-abcde");
  named["metadata"] = Json::object();
  EXPECT_THAT(broken(read(named, request(core::KeptKind::lease))), ElementsAre("metadata.name"));
  named = lease_json();
  named["metadata"]["annotations"]["a"] = std::string(core::kKeptBytesMax, 'x');
  EXPECT_THAT(broken(read(named, request(core::KeptKind::lease))), ElementsAre("metadata"));
}

TEST(P24Lease, AChangeKeepsUidAndCreation) {
  const auto first = read(lease_json(), request(core::KeptKind::lease));
  Json next = lease_json();
  next["spec"]["holderIdentity"] = "b";
  next["metadata"]["resourceVersion"] = "7";
  const auto changed =
      changed_kept(*parse_json(next.dump()), request(core::KeptKind::lease), first->kept);
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->resource_version, "7");
  EXPECT_EQ(changed->kept.uid, "uid-1");
  EXPECT_EQ(kept_json(changed->kept, 1)["metadata"]["creationTimestamp"], "2026-03-01T12:00:00Z");
  next["metadata"]["uid"] = "another";
  const auto other =
      changed_kept(*parse_json(next.dump()), request(core::KeptKind::lease), first->kept);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Errc::conflict);
}

TEST(P24Event, ConvertsBetweenBothApiGroups) {
  const auto written = read(event_json_of(), request(core::KeptKind::event));
  ASSERT_TRUE(written.ok()) << written.error().message;
  const OrderedJson other = kept_json(written->kept, 5, EventWords::events_v1);
  EXPECT_EQ(other["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(other["regarding"]["name"], "rows");
  EXPECT_EQ(other["note"], "admitted by the quota");
  EXPECT_EQ(other["deprecatedCount"], 2);
  EXPECT_FALSE(other.contains("message"));
  Json back(other);
  back = in_core_words(std::move(back));
  back.erase("eventTime");
  EXPECT_EQ(back, Json(kept_json(written->kept, 5)));
}

TEST(P24Event, IsValidatedByRulesOfItsApiGroup) {
  Json json = event_json_of();
  json["involvedObject"]["namespace"] = "other";
  EXPECT_THAT(broken(read(json, request(core::KeptKind::event))),
              ElementsAre("involvedObject.namespace"));
  const KeptRequest in_events = request(core::KeptKind::event, EventWords::events_v1);
  json = {{"metadata", {{"name", "e"}}}, {"regarding", {{"namespace", "default"}}}};
  EXPECT_THAT(broken(read(json, in_events)), ElementsAre("eventTime", "reportingInstance", "action",
                                                         "reason", "reportingController", "type"));
  json["eventTime"] = "2026-03-01T12:00:00.000001Z";
  json["reportingController"] = "example.com/quota";
  json["reportingInstance"] = "quota-1";
  json["action"] = "Admit";
  json["reason"] = "Admitted";
  json["type"] = "Normal";
  json["note"] = std::string(1024, 'x');
  EXPECT_THAT(broken(read(json, in_events)), ElementsAre());
  json["note"] = std::string(1025, 'x');
  EXPECT_THAT(broken(read(json, in_events)), ElementsAre("note"));
}

Json config_map_json(const char* name = "settings") {
  return {{"metadata", {{"name", name}}}, {"data", {{"k", "v"}}}};
}

TEST(P24ConfigMap, ViolationNamesInvalidKeyOrSize) {
  auto paths = [](const Json& changes) {
    Json json = config_map_json();
    json.merge_patch(changes);
    return broken(read(json, request(core::KeptKind::config_map)));
  };
  EXPECT_THAT(paths(Json::object()), ElementsAre());
  EXPECT_THAT(paths({{"data", {{"a/b", ""}}}}), ElementsAre("data[a/b]"));
  EXPECT_THAT(paths({{"binaryData", {{"k", "eA=="}}}}), ElementsAre("data[k]"));
  EXPECT_THAT(paths({{"data", {{"k", std::string(1u << 20, 'x')}}}}), ElementsAre());
  EXPECT_THAT(paths({{"data", {{"k", std::string((1u << 20) + 1, 'x')}}}}), ElementsAre("data"));
  EXPECT_THAT(paths({{"binaryData", {{"b", "%"}}}}),
              ElementsAre("message: binaryData: illegal base64 data"));
  EXPECT_THAT(paths({{"metadata", {{"annotations", {{"muster.dev/owner-uid", "0"}}}}}}),
              ElementsAre("metadata.annotations[muster.dev/owner-uid]"));
  KeptRequest user = request(core::KeptKind::config_map);
  user.owner = core::Owner{1001, 100, "alice"};
  user.may_share = false;
  auto written = read(config_map_json(), user);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->kept.owner, 1001u);
  Json shared = config_map_json();
  shared["metadata"]["annotations"][std::string(kSharedKey)] = "true";
  EXPECT_THAT(broken(read(shared, user)), ElementsAre("metadata.annotations[muster.dev/shared]"));
  user.may_share = true;
  written = read(shared, user);
  ASSERT_TRUE(written.ok());
  EXPECT_TRUE(kept_facts(written->kept).shared);
}

TEST(P24ConfigMap, ImmutableDataCannotBeChanged) {
  Json json = config_map_json();
  json["immutable"] = true;
  const KeptRequest how = request(core::KeptKind::config_map);
  const auto first = read(json, how);
  ASSERT_TRUE(first.ok());
  auto changed = [&](const Json& changes) {
    Json next = json;
    next.merge_patch(changes);
    return broken(changed_kept(*parse_json(next.dump()), how, first->kept));
  };
  EXPECT_THAT(changed({{"metadata", {{"labels", {{"a", "b"}}}}}}), ElementsAre());
  EXPECT_THAT(changed({{"data", {{"k", "w"}}}}), ElementsAre("data"));
  EXPECT_THAT(changed({{"immutable", nullptr}, {"binaryData", {{"b", "eA=="}}}}),
              ElementsAre("immutable", "binaryData"));
}

TEST(P24Namespace, StatusAndDeletionAreSetByServerOnly) {
  KeptRequest how = request(core::KeptKind::name_space);
  how.ns = "";
  Json json = {{"metadata", {{"name", "blue"}}}, {"status", {{"phase", "Odd"}}}};
  const auto first = read(json, how);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(kept_facts(first->kept).fields.at("status.phase"), "Active");
  const core::KeptPtr going = terminated(first->kept, kGiven.now_ms, 1001);
  EXPECT_TRUE(kept_facts(*going).terminating);
  EXPECT_EQ(terminated_by(*going), 1001u);
  const auto changed = changed_kept(*parse_json(json.dump()), how, *going);
  ASSERT_TRUE(changed.ok());
  EXPECT_TRUE(kept_facts(changed->kept).terminating);
  EXPECT_EQ(terminated_by(changed->kept), 1001u);
  json["metadata"]["name"] = "a.b";
  EXPECT_THAT(broken(read(json, how)), ElementsAre("metadata.name"));
}

// ---- the read model

class P24View : public ::testing::Test {
 protected:
  core::KeptPtr put(const Json& json, core::KeptKind kind) {
    auto written = read(json, request(kind));
    EXPECT_TRUE(written.ok());
    const auto shown = view_.kept(kind, "default", written->kept.name);
    auto next = std::make_shared<core::Kept>(written->kept);
    feed_.kept(shown ? shown->kept->kept : nullptr, next);
    return view_.kept(kind, "default", next->name)->kept->kept;
  }
  std::vector<std::string> listed(Kind kind, const std::string& fields) {
    Query query{.kind = kind, .ns = ""};
    query.fields = *Selector::fields(fields, kind);
    std::vector<std::string> names;
    view_.each(kind, "", query.wanted(), [&](const Shown& shown) {
      if (query.matches(view_, shown)) names.push_back(shown.kept ? shown.kept->kept->name : "job");
    });
    return names;
  }
  View view_;
  Feeder feed_{view_};
};

TEST_F(P24View, ListSelectsFieldsOfBothEventGroups) {
  put(lease_json("a"), core::KeptKind::lease);
  put(event_json_of("e"), core::KeptKind::event);
  EXPECT_THAT(listed(Kind::lease, ""), ElementsAre("a"));
  EXPECT_THAT(listed(Kind::lease, "metadata.name=b"), ElementsAre());
  EXPECT_THAT(listed(Kind::event, "involvedObject.name=rows,reason=Admitted"), ElementsAre("e"));
  EXPECT_THAT(listed(Kind::event, "regarding.name=rows,type=Normal,source=quota"),
              ElementsAre("e"));
  EXPECT_THAT(listed(Kind::event, "regarding.name=others"), ElementsAre());
  EXPECT_FALSE(Selector::fields("spec.holderIdentity=a", Kind::lease).ok());
}

TEST_F(P24View, WatchReportsAddModifyAndDelete) {
  Query query{.kind = Kind::lease, .ns = "default"};
  put(lease_json("a"), core::KeptKind::lease);
  Watch watch(view_, query, view_.changes(Kind::lease).end(), true);
  std::vector<std::string> sent;
  auto pull = [&] {
    ASSERT_TRUE(watch.pull(
        [&](std::string_view type, const Shown& shown) {
          sent.push_back(std::string(type) + " " + shown.kept->kept->name + " " +
                         std::to_string(commit_of(shown.version)));
        },
        100));
  };
  pull();
  Json changed = lease_json("a");
  changed["spec"]["holderIdentity"] = "b";
  const core::KeptPtr now = put(changed, core::KeptKind::lease);
  put(event_json_of("e"), core::KeptKind::event);
  pull();
  feed_.kept(now, nullptr);
  pull();
  EXPECT_THAT(sent, ElementsAre("ADDED a 1", "MODIFIED a 2", "DELETED a 4"));
}

// So that a write that names it is accepted.
TEST_F(P24View, VersionSeenInWatchIsTheObjectsOwn) {
  put(lease_json("a"), core::KeptKind::lease);
  feed_.node({.id = 1, .name = "n"});
  Watch watch(view_, {.kind = Kind::lease}, view_.changes(Kind::lease).end(), false);
  put(lease_json("a"), core::KeptKind::lease);
  put(lease_json("b"), core::KeptKind::lease);
  std::map<std::string, uint64_t> sent;
  watch.pull([&](std::string_view, const Shown& s) { sent[s.kept->kept->name] = s.version; }, 100);
  for (const char* name : {"a", "b"})
    EXPECT_EQ(sent[name], view_.kept(core::KeptKind::lease, "default", name)->version) << name;
}

TEST_F(P24View, TableShowsHolderOfLeaseAndReasonOfEvent) {
  put(lease_json("a"), core::KeptKind::lease);
  put(event_json_of("e"), core::KeptKind::event);
  Renderer renderer(view_, [] { return kGiven.now_ms + 90'000; });
  std::string text;
  renderer.row(text, *view_.kept(core::KeptKind::lease, "default", "a"), Form::table);
  EXPECT_EQ(Json::parse(text)["cells"], Json({"a", "a", "90s"}));
  text.clear();
  renderer.row(text, *view_.event("default", "e"), Form::table);
  EXPECT_EQ(Json::parse(text)["cells"],
            Json({"90s", "Normal", "Admitted", "job/rows", "admitted by the quota", "quota", "e"}));
}

}  // namespace
}  // namespace muster::api
