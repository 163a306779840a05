// Deletions of owners over HTTP: in the background, in the foreground, and with orphans.
#include "core/spec/values/well_known.hpp"
#include "tests/unit/api/routes/server_fixture.hpp"

#include <vector>

namespace muster::api {
namespace {

using namespace testing;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";

class OwnersRoutesTest : public ServerTest {
 protected:
  static Json ref(const std::string& kind, const std::string& name, const Json& uid,
                  bool blocks = false) {
    return {{"apiVersion", kind == "Job" ? "batch/v1" : "v1"},
            {"kind", kind},
            {"name", name},
            {"uid", uid},
            {"blockOwnerDeletion", blocks}};
  }
  // Returns the uid of a new config map or job.
  Json map(const std::string& name, const std::vector<Json>& owners = {}) {
    const Answer made =
        post(kMaps, Json{{"metadata", {{"name", name}, {"ownerReferences", Json(owners)}}}}.dump());
    EXPECT_EQ(made.code, 201) << made.body;
    return made.json()["metadata"]["uid"];
  }
  Json job(const std::string& name, const std::vector<Json>& owners = {}) {
    Json manifest = Json::parse(kManifest);
    manifest["metadata"] = {{"name", name}, {"ownerReferences", Json(owners)}};
    const Answer made = post(kJobs, manifest.dump());
    EXPECT_EQ(made.code, 201) << made.body;
    return made.json()["metadata"]["uid"];
  }
  Answer remove(const std::string& path, const std::string& how) {
    return call(request("DELETE", path + "?propagationPolicy=" + how));
  }
  bool gone(const std::string& path) {
    return until([&] { return get(path).code == 404; });
  }
  // As the job's actor does once its last pod has ended and no finalizer is left.
  void forget(const std::string& name) {
    feed.records(view.job("default", name)->job->id(), {core::JobForgotten{kStart}});
  }
};

TEST_F(OwnersRoutesTest, JobsGoWithTheirOwners) {
  const Json of = map("m");
  job("child", {ref("ConfigMap", "m", of)});
  job("grandchild", {ref("Job", "child", get(kJobs + "/child").json()["metadata"]["uid"])});
  job("never", {ref("ConfigMap", "m", "00000000-0000-4000-8000-000000000099")});
  const Json foo = {{"apiVersion", "example.com/v1"}, {"kind", "Foo"}, {"name", "f"}, {"uid", "u"}};
  job("foreign", {foo});
  EXPECT_TRUE(gone(kJobs + "/never")) << "its owner never existed";
  EXPECT_EQ(backend.last_propagation, Propagation::background);
  EXPECT_EQ(get(kJobs + "/child").code, 200);
  ASSERT_EQ(remove(kMaps + "/m", "Background").code, 200);
  EXPECT_TRUE(gone(kJobs + "/child"));
  EXPECT_TRUE(gone(kJobs + "/grandchild"));
  EXPECT_EQ(get(kJobs + "/foreign").code, 200);
}

TEST_F(OwnersRoutesTest, OrphanedJobsLoseTheirReference) {
  const Json of = map("m");
  job("child", {ref("ConfigMap", "m", of), ref("ConfigMap", "n", map("n"))});
  ASSERT_EQ(remove(kMaps + "/m", "Orphan").code, 200);
  const Json child = get(kJobs + "/child").json();
  ASSERT_EQ(child["metadata"]["ownerReferences"].size(), 1u) << child["metadata"];
  EXPECT_EQ(child["metadata"]["ownerReferences"][0]["name"], "n");
  // With another owner left, only the reference to the one that is gone is lost.
  const Json other = map("o");
  map("two", {ref("ConfigMap", "n", child["metadata"]["ownerReferences"][0]["uid"]),
              ref("ConfigMap", "o", other)});
  ASSERT_EQ(remove(kMaps + "/o", "Background").code, 200);
  EXPECT_TRUE(
      until([&] { return get(kMaps + "/two").json()["metadata"]["ownerReferences"].size() == 1; }));
}

TEST_F(OwnersRoutesTest, ConfigMapInTheForegroundWaitsForJob) {
  const Json of = map("m");
  job("child", {ref("ConfigMap", "m", of, true)});
  const JobId id = view.job("default", "child")->job->id();
  feed.create(id, 0, 1);
  const Answer leaving = remove(kMaps + "/m", "Foreground");
  ASSERT_EQ(leaving.code, 200) << leaving.body;
  const Json meta = leaving.json()["metadata"];
  EXPECT_TRUE(meta.contains("deletionTimestamp")) << leaving.body;
  EXPECT_EQ(meta["finalizers"], Json::array({"foregroundDeletion"}));
  EXPECT_EQ(post(kMaps, R"({"metadata":{"name":"m"}})").json()["message"],
            R"(object is being deleted: configmaps "m" already exists)");
  ASSERT_TRUE(until([&] { return view.job("default", "child")->job->state().deleted_at; }));
  EXPECT_EQ(backend.last_propagation, Propagation::foreground) << "it has pods of its own";
  EXPECT_EQ(get(kMaps + "/m").code, 200);
  // What is being deleted can be changed, but not brought back.
  const Answer changed =
      call(request("PATCH", kMaps + "/m", "Content-Type: application/merge-patch+json\r\n",
                   R"({"metadata":{"deletionTimestamp":null,"labels":{"a":"b"}}})"));
  ASSERT_EQ(changed.code, 200) << changed.body;
  EXPECT_TRUE(changed.json()["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(get(kMaps + "/m").code, 200);
  forget("child");
  EXPECT_TRUE(gone(kMaps + "/m"));
}

TEST_F(OwnersRoutesTest, FinalizerOfForegroundDeletionCanBeRemoved) {
  const Json of = map("m");
  map("child", {ref("ConfigMap", "m", of, true)});
  job("held", {ref("ConfigMap", "child", get(kMaps + "/child").json()["metadata"]["uid"], true)});
  feed.create(view.job("default", "held")->job->id(), 0, 1);
  ASSERT_EQ(remove(kMaps + "/m", "Foreground").code, 200);
  ASSERT_TRUE(until([&] {
    return get(kMaps + "/child").json()["metadata"].contains("deletionTimestamp");
  })) << "it has dependents of its own";
  const auto finalizers = [&](const std::string& list) {
    return call(request("PATCH", kMaps + "/m", "Content-Type: application/merge-patch+json\r\n",
                        R"({"metadata":{"finalizers":)" + list + "}}"))
        .code;
  };
  EXPECT_EQ(finalizers(R"(["foregroundDeletion","a.io/b"])"), 422);
  EXPECT_EQ(finalizers("null"), 200);
  EXPECT_TRUE(gone(kMaps + "/m"));
}

TEST_F(OwnersRoutesTest, JobInTheForegroundWaitsForItsDependents) {
  const Json of = job("owner");
  map("child", {ref("Job", "owner", of, true)});
  job("slow", {ref("Job", "owner", of, true)});
  feed.create(view.job("default", "slow")->job->id(), 0, 1);
  const Answer leaving = remove(kJobs + "/owner", "Foreground");
  ASSERT_EQ(leaving.code, 200);
  EXPECT_EQ(leaving.json()["metadata"]["finalizers"], Json::array({"foregroundDeletion"}));
  EXPECT_TRUE(gone(kMaps + "/child"));
  ASSERT_TRUE(until([&] { return view.job("default", "slow")->job->state().deleted_at; }));
  const auto held = [&] {
    const auto shown = view.job("default", "owner");
    return shown && !shown->job->object().meta.finalizers.empty();
  };
  EXPECT_TRUE(held());
  forget("slow");
  EXPECT_TRUE(until([&] { return !held(); })) << "its actor forgets it then";
}

}  // namespace
}  // namespace muster::api
