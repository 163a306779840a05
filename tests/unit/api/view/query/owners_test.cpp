// What follows from the owners of jobs and stored objects.
#include "api/view/query/owners.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::api {
namespace {

using namespace testing;

// A reference to a config map or job whose uid is uid_of(n). "!": it blocks the owner's deletion.
struct Ref {
  std::string kind, name;
  int n = 0;
  bool blocks = false;
};
Json json_of(const std::vector<Ref>& refs) {
  Json list = Json::array();
  for (const Ref& ref : refs)
    list.push_back({{"apiVersion", ref.kind == "Job"     ? "batch/v1"
                                   : ref.kind == "Lease" ? "coordination.k8s.io/v1"
                                   : ref.kind == "Foo"   ? "example.com/v1"
                                                         : "v1"},
                    {"kind", ref.kind},
                    {"name", ref.name},
                    {"uid", uid_of(ref.n)},
                    {"blockOwnerDeletion", ref.blocks}});
  return list;
}

class OwnersTest : public ::testing::Test {
 protected:
  core::KeptPtr map(const std::string& name, int n, const std::vector<Ref>& refs = {},
                    bool waits = false) {
    Json meta = {{"name", name}, {"namespace", "default"}, {"uid", uid_of(n)}};
    if (!refs.empty()) meta["ownerReferences"] = json_of(refs);
    core::KeptPtr kept = std::make_shared<core::Kept>(core::Kept{
        .kind = core::KeptKind::config_map,
        .ns = "default",
        .name = name,
        .uid = uid_of(n),
        .json = Json{{"kind", "ConfigMap"}, {"apiVersion", "v1"}, {"metadata", meta}}.dump()});
    if (waits) kept = deleted_in_foreground(*kept, kStart);
    const auto seen = view.kept(core::KeptKind::config_map, "default", name);
    feed.kept(seen ? seen->kept->kept : nullptr, kept);
    return kept;
  }
  void job(const std::string& name, int n, const std::vector<Ref>& refs = {}) {
    auto object = std::make_shared<core::JobObject>(*make_job(name, uid_of(n)));
    Json document = Json::parse(object->json);
    document["metadata"]["ownerReferences"] = json_of(refs);
    object->json = document.dump();
    object = std::const_pointer_cast<core::JobObject>(load_job(object->json));
    feed.admit(static_cast<JobId>(n), object);
  }
  std::string verdict(const std::string& name) {
    const Owners owners(view);
    const auto& all = owners.dependents();
    const auto one = std::find_if(all.begin(), all.end(),
                                  [&name](const Dependent& d) { return d.name == name; });
    if (one == all.end()) return "not judged";
    const Verdict verdict = owners.judge(*one);
    switch (verdict.what) {
      case Verdict::What::stays:
        return "stays";
      case Verdict::What::released:
        return "released of " + std::to_string(verdict.lost.size());
      case Verdict::What::deleted:
        return "deleted";
      case Verdict::What::deleted_in_foreground:
        return "deleted in the foreground";
    }
    return "";
  }
  bool blocked(int n) { return Owners(view).blocked(uid_of(n)); }

  View view;
  Feeder feed{view};
};

TEST_F(OwnersTest, ObjectsOfGoneOwnersAreDeleted) {
  map("config", 1);
  job("owner", 2);
  const struct {
    std::vector<Ref> refs;
    const char* expected;
  } cases[] = {
      {{}, "not judged"},
      {{{"ConfigMap", "config", 1}}, "stays"},
      {{{"Job", "owner", 2}}, "stays"},
      {{{"ConfigMap", "config", 9}}, "deleted"},  // another of this name
      {{{"Job", "none", 9}}, "deleted"},
      {{{"Lease", "none", 9}}, "deleted"},
      {{{"Event", "none", 9}}, "deleted"},
      {{{"Pod", "none", 9}}, "deleted"},
      {{{"Node", "none", 9}}, "deleted"},
      {{{"Job", "none", 8}, {"Job", "none", 9}}, "deleted"},
      {{{"Job", "none", 9}, {"Job", "owner", 2}}, "released of 1"},
      {{{"Job", "none", 9}, {"Foo", "foreign", 8}}, "released of 1"},
      {{{"Foo", "foreign", 8}}, "not judged"},
      {{{"Namespace", "default", 9}}, "not judged"},
  };
  int n = 100;
  for (const auto& one : cases) {
    const std::string name = std::to_string(++n);
    map("m" + name, n, one.refs);
    job("j" + name, n + 100, one.refs);
    EXPECT_EQ(verdict("m" + name), one.expected) << json_of(one.refs);
    EXPECT_EQ(verdict("j" + name), one.expected) << json_of(one.refs);
  }
}

TEST_F(OwnersTest, OwnerInTheForegroundWaitsForWhatBlocksIt) {
  map("owner", 1, {}, true);
  map("free", 2, {{"ConfigMap", "owner", 1}});
  EXPECT_EQ(verdict("free"), "deleted");
  EXPECT_FALSE(blocked(1));
  map("blocks", 3, {{"ConfigMap", "owner", 1, true}});
  EXPECT_EQ(verdict("blocks"), "deleted");
  EXPECT_TRUE(blocked(1));
  map("shared", 4, {{"ConfigMap", "owner", 1, true}, {"ConfigMap", "other", 5, true}});
  EXPECT_EQ(verdict("shared"), "deleted");
  map("other", 5);
  EXPECT_EQ(verdict("shared"), "released of 1") << "it has another owner";
  map("deep", 6, {{"ConfigMap", "blocks", 3, true}});
  EXPECT_EQ(verdict("blocks"), "deleted in the foreground") << "it has dependents of its own";
  EXPECT_EQ(verdict("deep"), "stays");
}

TEST_F(OwnersTest, JobInTheForegroundIsWaiting) {
  job("owner", 1);
  feed.create(1, 0, 1);
  job("child", 2, {{"Job", "owner", 1, true}});
  feed.create(2, 0, 1);
  EXPECT_EQ(verdict("child"), "stays");
  EXPECT_TRUE(blocked(1));
  feed.records(1, {core::JobDeleted{kStart, false, false}});
  EXPECT_EQ(verdict("child"), "deleted in the foreground") << "its pods are its dependents";
  feed.records(2, {core::JobDeleted{kStart, false, false}});
  EXPECT_EQ(verdict("child"), "stays") << "its deletion has begun";
  EXPECT_TRUE(blocked(1));
  feed.records(2, {core::JobForgotten{kStart}});
  EXPECT_FALSE(blocked(1));
}

TEST_F(OwnersTest, CircleDoesNotWaitForItself) {
  map("a", 1, {{"ConfigMap", "c", 3, true}}, true);
  map("b", 2, {{"ConfigMap", "a", 1, true}}, true);
  map("c", 3, {{"ConfigMap", "b", 2, true}});
  EXPECT_TRUE(blocked(1)) << "c is not deleted yet";
  map("c", 3, {{"ConfigMap", "b", 2, true}}, true);
  EXPECT_FALSE(blocked(1));
  EXPECT_FALSE(blocked(2));
  // A chain is no circle.
  map("x", 11, {}, true);
  map("y", 12, {{"ConfigMap", "x", 11, true}}, true);
  map("z", 13, {{"ConfigMap", "y", 12, true}}, true);
  EXPECT_TRUE(blocked(11));
  EXPECT_TRUE(blocked(12));
  EXPECT_FALSE(blocked(13));
}

// A job that is not in memory is judged by what its summary has of its owners.
TEST_F(OwnersTest, UnloadedJobsAreJudged) {
  view.add_unloaded({.id = 7,
                     .ns = "default",
                     .name = "done",
                     .uid = uid_of(7),
                     .owners = {{"batch/v1", "Job", "none", uid_of(9), false}}});
  EXPECT_EQ(verdict("done"), "deleted");
  job("child", 8, {{"Job", "done", 7}});
  EXPECT_EQ(verdict("child"), "stays");
}

}  // namespace
}  // namespace muster::api
