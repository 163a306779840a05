// Server-side apply of leases and events.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const std::string kEvents = "/api/v1/namespaces/default/events";
const std::string kNewEvents = "/apis/events.k8s.io/v1/namespaces/default/events";

class KeptApplyTest : public ServerTest {
 protected:
  Answer apply(const std::string& path, const Json& body, const std::string& query = "") {
    return call(request("PATCH", path + "?fieldManager=me" + query,
                        "Content-Type: application/apply-patch+yaml\r\n", body.dump()));
  }
  Answer merge(const std::string& path, const std::string& body) {
    return call(request("PATCH", path + "?fieldManager=other",
                        "Content-Type: application/merge-patch+json\r\n", body));
  }
};

TEST_F(KeptApplyTest, LeaseIsCreatedChangedAndShared) {
  Json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                {"kind", "Lease"},
                {"metadata", {{"name", "l"}, {"labels", {{"a", "b"}}}}},
                {"spec", {{"holderIdentity", "one"}, {"leaseDurationSeconds", 15}}}};
  const Answer made = apply(kLeases + "/l", lease);
  ASSERT_EQ(made.code, 201) << made.body;
  const Json entry = made.json()["metadata"]["managedFields"][0];
  EXPECT_EQ(entry["operation"], "Apply");
  EXPECT_EQ(entry["apiVersion"], "coordination.k8s.io/v1");
  EXPECT_TRUE(entry["fieldsV1"]["f:spec"].contains("f:holderIdentity")) << entry;
  ASSERT_EQ(merge(kLeases + "/l", R"({"spec":{"holderIdentity":"two"}})").code, 200);
  const Answer refused = apply(kLeases + "/l", lease);
  EXPECT_EQ(refused.code, 409);
  EXPECT_EQ(refused.json()["details"]["causes"][0]["field"], ".spec.holderIdentity");
  lease["spec"].erase("holderIdentity");
  lease["metadata"].erase("labels");
  const Answer next = apply(kLeases + "/l", lease);
  ASSERT_EQ(next.code, 200) << next.body;
  EXPECT_EQ(next.json()["spec"]["holderIdentity"], "two");
  EXPECT_FALSE(next.json()["metadata"].contains("labels"));
  lease["spec"]["leaseDurationSeconds"] = 0;
  EXPECT_TRUE(apply(kLeases + "/l", lease).is_status("Invalid"));
  EXPECT_EQ(call(request("PATCH", kLeases + "/l", "Content-Type: application/apply-patch+yaml\r\n",
                         lease.dump()))
                .code,
            422)
      << "without a field manager";
}

// An event is one object, whichever group's fields are applied.
TEST_F(KeptApplyTest, EventIsAppliedInTheWordsOfEachGroup) {
  Json event = {{"apiVersion", "events.k8s.io/v1"},
                {"kind", "Event"},
                {"metadata", {{"name", "e"}}},
                {"eventTime", "2026-03-01T12:00:00.000000Z"},
                {"reportingController", "example.com/c"},
                {"reportingInstance", "c-1"},
                {"action", "Do"},
                {"reason", "Done"},
                {"type", "Normal"},
                {"note", "first"},
                {"regarding", {{"kind", "Job"}, {"namespace", "default"}, {"name", "a"}}}};
  ASSERT_EQ(apply(kNewEvents + "/e", event).code, 201);
  const Json seen = get(kEvents + "/e").json();
  EXPECT_EQ(seen["message"], "first");
  EXPECT_TRUE(seen["metadata"]["managedFields"][0]["fieldsV1"].contains("f:message"))
      << seen["metadata"]["managedFields"];
  event["note"] = "second";
  ASSERT_EQ(apply(kNewEvents + "/e", event).code, 200);
  EXPECT_EQ(get(kNewEvents + "/e").json()["note"], "second");
  ASSERT_EQ(merge(kEvents + "/e", R"({"message":"third"})").code, 200);
  EXPECT_EQ(apply(kNewEvents + "/e", event).code, 409);
  // Without it, the message stays with its new manager.
  event.erase("note");
  ASSERT_EQ(apply(kNewEvents + "/e", event).code, 200);
  EXPECT_EQ(get(kEvents + "/e").json()["message"], "third");
  event["type"] = "Odd";
  EXPECT_TRUE(apply(kNewEvents + "/e", event).is_status("Invalid"));

  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  const Json list = get(kEvents + "?fieldSelector=involvedObject.uid%3D" + uid_of(1)).json();
  ASSERT_GE(list["items"].size(), 1u);
  const std::string own = list["items"][0]["metadata"]["name"];
  EXPECT_EQ(
      apply(kEvents + "/" + own,
            {{"apiVersion", "v1"}, {"kind", "Event"}, {"metadata", {{"labels", {{"a", "b"}}}}}})
          .code,
      400)
      << "an event of muster's own";
}

}  // namespace
}  // namespace muster::api
