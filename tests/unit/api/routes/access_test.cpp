// A server with several users: each request is made as each of them.
#include "api/access/audit.hpp"
#include "api/kube/objects/kept_object.hpp"
#include "core/pod_name.hpp"
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api::testing {
namespace {

constexpr uid_t kAlice = 1001, kBob = 1002, kOlga = 1003, kPrometheus = 1004, kDave = 1005;
constexpr const char* kSecret = "s3cr3t";

Account account_of(uid_t uid) {
  Account account{{uid, uid, "u" + std::to_string(uid)}, {}};
  if (uid == kAlice || uid == kBob) account.groups = {"hpc"};
  if (uid == kOlga) account.groups = {"hpc", "ops"};
  if (uid == kPrometheus) account.groups = {"prom"};
  if (uid == kAlice) account.who.name = "alice";
  return account;
}

std::string manifest(const std::string& name, const std::string& more = "") {
  return R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":")" + name + "\"" + more +
         R"(},"spec":{"completionMode":"Indexed","completions":2,"parallelism":2,)"
         R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"img",)"
         R"("command":["true"],"args":["s3cr3t"],"env":[{"name":"K","value":"s3cr3t"}]}]}}}})";
}

class AccessTest : protected AuditLines, public ServerTest {
 protected:
  explicit AccessTest(bool private_jobs = false, QuotaLimits quotas = {},
                      const std::function<void(ServerOptions&)>& adapt = {})
      : ServerTest([&, private_jobs, quotas](ServerOptions& o) {
          o.quotas = quotas;
          o.roles = {{"hpc"}, {"ops"}, {}, {"prom"}};
          o.access.private_jobs = private_jobs;
          o.read_account = account_of;
          o.audit = [this](const OrderedJson& object) { audited.push_back(dumped(object)); };
          o.metrics = [] { return std::string("metrics\n"); };
          if (adapt) adapt(o);
        }) {}

  Answer as(uid_t who, const std::string& method, const std::string& path,
            const std::string& body = "", const std::string& headers = "") {
    uid = who;
    const std::string type =
        method == "PATCH" ? "application/merge-patch+json" : "application/json";
    return call(request(method, path,
                        headers + (body.empty() ? "" : "Content-Type: " + type + "\r\n"), body));
  }
  void created_by(uid_t who, const std::string& name) {
    const Answer made = as(who, "POST", kJobs, manifest(name));
    ASSERT_EQ(made.code, 201) << made.body;
  }
  // Creates a pod of this job. The fixture's backend numbers jobs from 100.
  std::string pod_of(JobId job, const std::string& name) {
    feed.records(job, {core::PodsCreated{kStart, {{0, 1, 0}}}});
    const auto shown = view.job("default", name);
    const core::JobMeta& meta = shown->job->object().meta;
    return core::pod_name(meta.name, meta.uid, true, {0, 0});
  }
};

class PrivateAccessTest : public AccessTest {
 protected:
  PrivateAccessTest() : AccessTest(true) {}
};

TEST_F(AccessTest, JobOwnerIsUserOfConnection) {
  created_by(kAlice, "j");
  const Json meta = as(kAlice, "GET", kJobs + "/j").json()["metadata"];
  EXPECT_EQ(meta["annotations"]["muster.dev/owner"], "alice");
  EXPECT_EQ(meta["annotations"]["muster.dev/owner-uid"], "1001");
  EXPECT_EQ(meta["annotations"]["muster.dev/owner-gid"], "1001");
  // The owner belongs to no field manager, so an apply without it does not remove it.
  EXPECT_EQ(meta["managedFields"].dump().find("owner"), std::string::npos);
}

TEST_F(AccessTest, NoRequestChoosesAnOwner) {
  const std::string forged = R"(,"annotations":{"muster.dev/owner-uid":"1002"})";
  EXPECT_EQ(as(kAlice, "POST", kJobs, manifest("j", forged)).code, 422);
  created_by(kAlice, "j");
  const std::string patch = R"({"metadata":{"annotations":{"muster.dev/owner-uid":"1002"}}})";
  EXPECT_EQ(as(kAlice, "PATCH", kJobs + "/j", patch).code, 422);
  EXPECT_EQ(as(kOlga, "PATCH", kJobs + "/j", patch).code, 422);
  // Removing it changes nothing.
  const std::string remove =
      R"({"metadata":{"annotations":{"muster.dev/owner-uid":null,"muster.dev/owner":null}}})";
  EXPECT_EQ(as(kAlice, "PATCH", kJobs + "/j", remove).code, 200);
  Json without = as(kAlice, "GET", kJobs + "/j").json();
  without["metadata"].erase("annotations");
  EXPECT_EQ(as(kAlice, "PUT", kJobs + "/j", without.dump()).code, 200);
  // An object may be sent back as it was read.
  Json whole = as(kAlice, "GET", kJobs + "/j").json();
  whole["spec"]["parallelism"] = 1;
  EXPECT_EQ(as(kAlice, "PUT", kJobs + "/j", whole.dump()).code, 200);
  EXPECT_EQ(core::owner_uid(view.job("default", "j")->job->object().meta.annotations), kAlice);
}

TEST_F(AccessTest, AnOperatorsChangeKeepsTheOwner) {
  created_by(kAlice, "j");
  EXPECT_EQ(as(kOlga, "PATCH", kJobs + "/j", R"({"spec":{"suspend":true}})").code, 200);
  EXPECT_EQ(core::owner_uid(view.job("default", "j")->job->object().meta.annotations), kAlice);
}

TEST_F(AccessTest, OthersSeeNameOwnerAndCountsOnly) {
  created_by(kAlice, "j");
  for (const char* headers : {"", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"})
    for (const std::string& path : {kJobs + "/j", kJobs, std::string("/apis/batch/v1/jobs")}) {
      const Answer own = as(kAlice, "GET", path, "", headers);
      EXPECT_NE(own.body.find("img"), std::string::npos) << path << own.body;
      const Answer other = as(kBob, "GET", path, "", headers);
      EXPECT_EQ(other.code, 200);
      EXPECT_NE(other.body.find("alice"), std::string::npos) << other.body;
      for (const char* hidden : {kSecret, "img", "managedFields", "main", "job-name"})
        EXPECT_EQ(other.body.find(hidden), std::string::npos) << path << other.body;
    }
  EXPECT_NE(as(kOlga, "GET", kJobs + "/j").body.find(kSecret), std::string::npos);
}

TEST_F(AccessTest, SelectorDoesNotMatchHiddenLabelsOfOtherUsers) {
  created_by(kAlice, "j");
  const std::string uid = view.job("default", "j")->job->object().meta.uid;
  const std::string path = kJobs + "?labelSelector=batch.kubernetes.io/controller-uid%3D" + uid;
  EXPECT_EQ(as(kAlice, "GET", path).json()["items"].size(), 1u);
  EXPECT_EQ(as(kBob, "GET", path).json()["items"].size(), 0u);
  EXPECT_EQ(as(kBob, "GET", kJobs + "?labelSelector=!x").json()["items"].size(), 0u);
}

TEST_F(AccessTest, PodsEventsAndLogsOfOtherUsersAreRefused) {
  created_by(kAlice, "j");
  const std::string pod = pod_of(100, "j");
  const std::string of_job = "/apis/muster.dev/v1/namespaces/default/jobs/j/";
  EXPECT_EQ(as(kAlice, "GET", kPods).json()["items"].size(), 1u);
  EXPECT_EQ(as(kBob, "GET", kPods).json()["items"].size(), 0u);
  EXPECT_EQ(as(kOlga, "GET", kPods).json()["items"].size(), 1u);
  EXPECT_EQ(as(kBob, "GET", "/api/v1/events").json()["items"].size(), 0u);
  EXPECT_GE(as(kAlice, "GET", "/api/v1/events").json()["items"].size(), 1u);
  for (const std::string& path :
       {kPods + "/" + pod, kPods + "/" + pod + "/log", of_job + "indexes", of_job + "attempts",
        of_job + "log?index=0&attempt=0", of_job + "why"}) {
    const Answer other = as(kBob, "GET", path);
    EXPECT_EQ(other.code, 403) << path << other.body;
    EXPECT_TRUE(other.is_status("Forbidden"));
    EXPECT_NE(as(kAlice, "GET", path).code, 403) << path;
  }
  EXPECT_EQ(backend.reads, 0) << "no log was read for anyone else";
}

TEST_F(AccessTest, OthersCannotChangeAnything) {
  created_by(kAlice, "j");
  const std::string pod = pod_of(100, "j");
  const std::string patch = R"({"spec":{"suspend":true}})";
  const std::string eviction =
      R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":")" + pod + "\"}}";
  EXPECT_EQ(as(kBob, "PATCH", kJobs + "/j", patch).code, 403);
  EXPECT_EQ(as(kBob, "PUT", kJobs + "/j", manifest("j")).code, 403);
  EXPECT_EQ(as(kBob, "PATCH", kJobs + "/j/scale", R"({"spec":{"replicas":0}})").code, 403);
  EXPECT_EQ(as(kBob, "PATCH", kJobs + "/j/status", R"({"status":{}})").code, 403);
  EXPECT_EQ(as(kBob, "DELETE", kJobs + "/j").code, 403);
  EXPECT_EQ(as(kBob, "DELETE", kPods + "/" + pod).code, 403);
  EXPECT_EQ(as(kBob, "POST", kPods + "/" + pod + "/eviction", eviction).code, 403);
  EXPECT_EQ(backend.updates, 0);
  // Deleting a collection deletes only the caller's own objects.
  EXPECT_EQ(as(kBob, "DELETE", kJobs).json()["items"].size(), 0u);
  EXPECT_EQ(as(kBob, "DELETE", kPods).json()["items"].size(), 0u);
  EXPECT_TRUE(view.job("default", "j"));
  EXPECT_FALSE(backend.last_grace_ms.has_value());
  // A name that another user has is taken for everyone.
  EXPECT_EQ(as(kBob, "POST", kJobs, manifest("j")).code, 409);
}

TEST_F(AccessTest, P11PrioritiesAreForOperators) {
  const auto with = [](const std::string& name, const std::string& field) {
    std::string text = manifest(name);
    text.insert(text.find(R"("restartPolicy")"), field + ",");
    return text;
  };
  const Answer high = as(kAlice, "POST", kJobs, with("high", R"("priority":2000000000)"));
  EXPECT_EQ(high.code, 403) << high.body;
  EXPECT_NE(
      high.body.find("spec.template.spec.priority: 2000000000 is above the maximum for users, "
                     "0 (--user-priority-max); an operator may set more"),
      std::string::npos)
      << high.body;
  const std::string system = R"("priorityClassName":"system-node-critical")";
  EXPECT_EQ(as(kAlice, "POST", kJobs, with("system", system)).code, 403);
  EXPECT_EQ(as(kAlice, "POST", kJobs + "?dryRun=All", with("system", system)).code, 403);
  uid = kAlice;
  EXPECT_EQ(call(request("PATCH", kJobs + "/applied?fieldManager=x",
                         "Content-Type: application/apply-patch+yaml\r\n", with("applied", system)))
                .code,
            403);
  EXPECT_EQ(as(kAlice, "POST", kJobs, with("low", R"("priority":-5)")).code, 201);
  EXPECT_EQ(as(kOlga, "POST", kJobs, with("operators", system)).code, 201);
  const auto role = [this](const char* name) {
    return view.job("default", name)
        ->job->object()
        .meta.annotations.contains(std::string(core::kOwnerRoleKey));
  };
  EXPECT_TRUE(role("operators"));
  EXPECT_FALSE(role("low"));
  const std::string forged = R"(,"annotations":{"muster.dev/owner-role":"operator"})";
  EXPECT_EQ(as(kAlice, "POST", kJobs, manifest("forged", forged)).code, 422);
}

// The access check before the body is not enough: the name may change hands while the body arrives.
TEST_F(AccessTest, PatchIsRefusedIfJobChangedOwnerMeanwhile) {
  created_by(kAlice, "j");
  backend.hold_computing = true;
  uid = kAlice;
  const std::string body = R"({"spec":{"suspend":true},"x":")" + std::string(40'000, 'x') + "\"}";
  auto client = connect(request("PATCH", kJobs + "/j?fieldValidation=Ignore",
                                "Content-Type: application/merge-patch+json\r\n", body));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return !backend.held.empty(); }));
  backend.hold_computing = false;
  feed.records(100, {core::JobDeleted{kStart, true, false}, core::JobForgotten{kStart}});
  created_by(kBob, "j");
  auto [work, done] = std::move(backend.held.front());
  work();
  done();
  ASSERT_TRUE(until([&] { return client->ended || whole(client->raw); }));
  const Answer answer = parsed(client->raw);
  EXPECT_GE(answer.code, 400) << answer.body;
  EXPECT_EQ(answer.body.find(kSecret), std::string::npos);
  EXPECT_FALSE(view.job("default", "j")->job->spec().suspend.value_or(false));
}

TEST_F(AccessTest, DeleteIsRefusedIfJobChangedOwnerBeforeBodyArrived) {
  created_by(kAlice, "j");
  uid = kAlice;
  const std::string all = request("DELETE", kJobs + "/j", "Content-Type: application/json\r\n",
                                  R"({"propagationPolicy":"Background"})");
  const size_t most = all.size() - 10;
  auto client = connect("");
  client->stream->write(all.data(), most).wait(io.waitScope);  // the server is reading the body
  feed.records(100, {core::JobDeleted{kStart, true, false}, core::JobForgotten{kStart}});
  created_by(kBob, "j");
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  client->stream->write(all.data() + most, all.size() - most).wait(io.waitScope);
  ASSERT_TRUE(until([&] { return client->ended || whole(client->raw); }));
  EXPECT_EQ(parsed(client->raw).code, 403) << client->raw;
  EXPECT_TRUE(view.job("default", "j"));
}

TEST_F(AccessTest, WatchHidesWhatListHides) {
  created_by(kAlice, "mine");
  uid = kBob;
  auto client = connect(request("GET", "/apis/batch/v1/jobs?watch=1&timeoutSeconds=60"));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->raw.find("\"mine\"") != std::string::npos; }));
  uid = kBob;
  auto pods = connect(request("GET", "/api/v1/pods?watch=1&timeoutSeconds=60"));
  auto reading_pods = pods->read().eagerlyEvaluate([](kj::Exception&&) {});
  pod_of(100, "mine");
  created_by(kBob, "bobs");
  pod_of(101, "bobs");
  ASSERT_TRUE(until([&] { return pods->raw.find("bobs") != std::string::npos; }));
  ASSERT_TRUE(until([&] { return client->raw.find("\"bobs\"") != std::string::npos; }));
  EXPECT_EQ(pods->raw.find("mine"), std::string::npos) << pods->raw;
  const std::string of_alice = client->raw.substr(0, client->raw.find("\"bobs\""));
  EXPECT_EQ(of_alice.find(kSecret), std::string::npos) << of_alice;
}

TEST_F(AccessTest, JobWithoutOwnerBelongsToCoordinatorUser) {
  feed.admit(1, make_job("old", uid_of(1), 1));
  EXPECT_EQ(as(kAlice, "GET", kJobs + "/old").body.find("image"), std::string::npos);
  EXPECT_EQ(as(kAlice, "DELETE", kJobs + "/old").code, 403);
  EXPECT_EQ(
      as(geteuid(), "GET", kJobs + "/old").json()["spec"]["template"]["spec"]["containers"].size(),
      1u);
}

TEST_F(AccessTest, EachRoleReachesOnlyItsResources) {
  EXPECT_EQ(as(kDave, "GET", kJobs).code, 403);
  EXPECT_EQ(as(kDave, "GET", "/healthz").code, 200);
  EXPECT_EQ(as(kDave, "GET", "/metrics").code, 403);
  EXPECT_EQ(as(kPrometheus, "GET", "/metrics").code, 200);
  EXPECT_EQ(as(kPrometheus, "GET", kJobs).code, 403);
  EXPECT_EQ(as(kAlice, "GET", "/metrics").code, 403);
  EXPECT_EQ(as(kOlga, "GET", "/metrics").code, 200);
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  const std::string cordon = R"({"spec":{"unschedulable":true}})";
  EXPECT_EQ(as(kAlice, "GET", "/api/v1/nodes/n1").code, 200);
  EXPECT_EQ(as(kAlice, "PATCH", "/api/v1/nodes/n1", cordon).code, 403);
  EXPECT_EQ(as(kOlga, "PATCH", "/api/v1/nodes/n1", cordon).code, 200);
  EXPECT_EQ(as(kAlice, "GET", "/api/v1/secrets").code, 403);
  EXPECT_EQ(as(geteuid(), "GET", "/api/v1/secrets").code, 404);
}

TEST_F(AccessTest, AccessReviewsAgreeWithRequests) {
  created_by(kAlice, "j");
  auto may = [this](uid_t who, const std::string& attributes) {
    const Answer a = as(who, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                        R"({"spec":{"resourceAttributes":{)" + attributes + "}}}");
    EXPECT_EQ(a.code, 201) << a.body;
    return a.json()["status"]["allowed"] == true;
  };
  const std::string remove =
      R"("verb":"delete","group":"batch","resource":"jobs","namespace":"default")";
  EXPECT_TRUE(may(kAlice, remove));
  EXPECT_TRUE(may(kAlice, remove + R"(,"name":"j")"));
  EXPECT_TRUE(may(kBob, remove));
  EXPECT_FALSE(may(kBob, remove + R"(,"name":"j")"));
  EXPECT_TRUE(may(kOlga, remove + R"(,"name":"j")"));
  EXPECT_FALSE(may(kAlice, R"("verb":"patch","resource":"nodes","name":"n1")"));
  EXPECT_TRUE(may(kOlga, R"("verb":"patch","resource":"nodes","name":"n1")"));
  const Json who =
      as(kAlice, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}").json();
  EXPECT_EQ(who["status"]["userInfo"]["username"], "alice");
  EXPECT_EQ(who["status"]["userInfo"]["uid"], "1001");
  EXPECT_EQ(who["status"]["userInfo"]["groups"], Json::array({"hpc"}));
  EXPECT_EQ(who["status"]["userInfo"]["extra"]["muster.dev/role"], Json::array({"user"}));
}

TEST_F(AccessTest, SecurityContextMayNameOwnUserButGainNoPrivilege) {
  auto code = [this](const std::string& of_pod, const std::string& of_container) {
    std::string body = manifest("s" + std::to_string(backend.creates));
    body.insert(body.find(R"("restartPolicy")"), R"("securityContext":)" + of_pod + ",");
    body.insert(body.find(R"("image")"), R"("securityContext":)" + of_container + ",");
    return as(kAlice, "POST", kJobs, body).code;
  };
  EXPECT_EQ(code(R"({"runAsUser":1001,"runAsGroup":1001,"runAsNonRoot":true})",
                 R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}})"),
            201);
  EXPECT_EQ(code(R"({"fsGroup":1001,"seccompProfile":{"type":"RuntimeDefault"}})",
                 R"({"runAsUser":1001})"),
            201);
  EXPECT_EQ(code(R"({"runAsUser":1002})", "{}"), 422);
  EXPECT_EQ(code(R"({"runAsUser":0})", "{}"), 422);
  EXPECT_EQ(code("{}", R"({"runAsGroup":0})"), 422);
  EXPECT_EQ(code(R"({"runAsUser":"1001"})", "{}"), 400);
  EXPECT_EQ(code(R"({"fsGroup":7})", "{}"), 422);
  EXPECT_EQ(code(R"({"supplementalGroups":[7]})", "{}"), 422);
  EXPECT_EQ(code("{}", R"({"capabilities":{"drop":["ALL"],"add":["SYS_ADMIN"]}})"), 422);
  EXPECT_EQ(code("{}", R"({"capabilities":{"add":["SYS_ADMIN"]}})"), 422);
  EXPECT_EQ(code("{}", R"({"privileged":true})"), 201) << "it is still the user's process";
}

TEST_F(AccessTest, AuditLogNamesUserVerbObjectAndCode) {
  created_by(kAlice, "j");
  as(kBob, "DELETE", kJobs + "/j");
  as(kBob, "GET", kJobs);
  as(kAlice, "GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/log?index=0&attempt=0");
  as(kDave, "GET", kJobs);
  ASSERT_TRUE(until([&] { return audited.size() == 4; })) << audited.size();
  std::vector<std::string> seen;
  for (const std::string& line : audited) {
    const Json j = Json::parse(line);
    seen.push_back(j["user"].get<std::string>() + " " + j["role"].get<std::string>() + " " +
                   j["verb"].get<std::string>() + " " + j.value("name", "-") + " " +
                   std::to_string(j["code"].get<int>()));
    EXPECT_EQ(line.find(kSecret), std::string::npos) << line;
    EXPECT_EQ(j["time"], "2023-11-14T22:13:20.000Z");
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"alice user create j 201", "u1002 user delete j 403",
                                            "alice user get j 404", "u1005 none list - 403"}));
}

TEST(AuditTest, ChangesOfNamedObjectsAreLogged) {
  Caller ada;
  ada.who.name = "ada";
  ada.who.uid = 1000;
  ada.distinguished = true;
  struct Row {
    Attributes wants;
    int code;
    std::string text;  // empty: not logged
    std::string made{};
  };
  const std::string ns = "default";
  const Row rows[] = {
      {{"patch", "batch", "jobs", "scale", ns, "j", ""}, 200, "patch jobs/scale default/j"},
      {{"update", "", "nodes", "", "", "n1", ""}, 200, "update nodes n1"},
      {{"deletecollection", "batch", "jobs", "", ns, "", ""}, 200, "deletecollection jobs default"},
      {{"create", "", "pods", "eviction", ns, "p", ""}, 201, "create pods/eviction default/p"},
      {{"create", "batch", "jobs", "", ns, "", ""}, 201, "", "j"},  // the job says so itself
      {{"create", "", "configmaps", "", ns, "", ""}, 201, "create configmaps default/c", "c"},
      {{"create", "", "configmaps", "", ns, "", ""}, 409, "", "c"},
      {{"create", "muster.dev", "queues", "", "", "", ""}, 201, "create queues q", "q"},
      {{"patch", "batch", "jobs", "", ns, "j", ""}, 409, ""},
      {{"delete", "batch", "jobs", "", ns, "j", ""}, 403, ""},
      {{"get", "", "pods", "log", ns, "p", ""}, 200, ""},
      {{"update", "coordination.k8s.io", "leases", "", ns, "l", ""}, 200, ""},
      {{"patch", "", "events", "", ns, "e", ""}, 200, ""},
  };
  for (const Row& row : rows) {
    const AuditEntry entry{ada, row.wants, "unix", "", row.code, row.made};
    EXPECT_EQ(is_change(entry) ? change_text(entry) : "",
              row.text.empty() ? "" : row.text + " by ada (uid 1000)");
    EXPECT_EQ(audit_object(entry, 0).value("name", ""),
              row.wants.name.empty() ? row.made : row.wants.name);
  }
}

TEST(AuditTest, SystemdJournalHasFieldForEachMember) {
  OrderedJson object;
  object["time"] = "2023-11-14T22:13:20.000Z";
  object["user"] = "alice";
  object["userAgent"] = "x\nPRIORITY=0";
  object["code"] = 201;
  std::string shown;
  for (const JournalField& field : audit_journal(object))
    shown += field.name + "=" + field.value + "|";
  EXPECT_EQ(shown, "MESSAGE=" + dumped(object) +
                       "|PRIORITY=6|MUSTER_USER=alice|MUSTER_USER_AGENT=x\nPRIORITY=0|"
                       "MUSTER_CODE=201|");
  object["code"] = 403;
  EXPECT_EQ(audit_journal(object)[1].value, "5");
}

class QuotaAccessTest : public AccessTest {
 protected:
  QuotaAccessTest() : AccessTest(false, {.jobs_max = 2, .requests_max = 5}) {}
};

TEST_F(QuotaAccessTest, UserHasLimitedUnfinishedJobs) {
  created_by(kAlice, "a");
  created_by(kAlice, "b");
  const Answer third = as(kAlice, "POST", kJobs, manifest("c"));
  EXPECT_EQ(third.code, 403) << third.body;
  EXPECT_NE(third.body.find("exceeded quota: the limit is 2 unfinished jobs"), std::string::npos);
  EXPECT_EQ(as(kBob, "POST", kJobs, manifest("c")).code, 201);
  for (const char* name : {"d", "e", "f"}) created_by(kOlga, name);  // an operator
  feed.records(100, {core::JobDeleted{kStart, true, false}, core::JobForgotten{kStart}});
  EXPECT_EQ(as(kAlice, "POST", kJobs, manifest("g")).code, 201);
}

TEST_F(QuotaAccessTest, UserHasLimitedRequestRate) {
  int refused = 0;
  for (int i = 0; i < 30; ++i) refused += as(kAlice, "GET", kJobs).code == 429;
  EXPECT_GT(refused, 0);
  EXPECT_EQ(as(kBob, "GET", kJobs).code, 200);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(as(kOlga, "GET", kJobs).code, 200);
}

class NamespaceAccessTest : public AccessTest {
 protected:
  explicit NamespaceAccessTest(bool private_jobs = false) : AccessTest(private_jobs) {
    view.provide([](const std::string& ns) { return root_ca(ns, "", kStart); });
  }
  static std::string jobs_in(const std::string& ns) {
    return "/apis/batch/v1/namespaces/" + ns + "/jobs";
  }
  static std::string maps_in(const std::string& ns) {
    return "/api/v1/namespaces/" + ns + "/configmaps";
  }
  void map_by(uid_t who, const std::string& ns) {
    ASSERT_EQ(as(who, "POST", maps_in(ns), R"({"metadata":{"name":"m"}})").code, 201);
  }
  // The answers to everything that a user can ask about a namespace, without its name.
  std::vector<std::string> answers(uid_t who, const std::string& ns) {
    const std::string path = "/api/v1/namespaces/" + ns;
    const std::string body = R"({"metadata":{"labels":{"a":"b"}}})";
    const std::string dry = "?dryRun=All";
    const std::string root = R"({"metadata":{"name":"kube-root-ca.crt"}})";
    std::vector<std::string> got;
    const auto add = [&](const Answer& answer) {
      std::string text = std::to_string(answer.code) + " " + answer.body;
      for (size_t at; (at = text.find(ns)) != std::string::npos;) text.replace(at, ns.size(), "*");
      got.push_back(text);
    };
    add(as(who, "GET", path));
    add(as(who, "PATCH", path + dry, body));
    add(as(who, "DELETE", path + dry));
    add(as(who, "GET", maps_in(ns) + "/kube-root-ca.crt"));
    add(as(who, "PUT", maps_in(ns) + "/kube-root-ca.crt" + dry, root));
    add(as(who, "DELETE", maps_in(ns) + "/kube-root-ca.crt" + dry));
    add(as(who, "POST", maps_in(ns) + dry, root));
    add(as(who, "GET", path + "/serviceaccounts/default"));
    for (const std::string& list : {maps_in(ns), path + "/serviceaccounts"})
      got.push_back(std::to_string(as(who, "GET", list).json()["items"].size()));
    return got;
  }
  std::string names(uid_t who, const std::string& path, const char* field = "name") {
    std::string text;
    const Json list = as(who, "GET", path).json();
    for (const Json& item : list["items"]) text += item["metadata"][field].get<std::string>() + " ";
    return text;
  }
};

class PrivateNamespaceTest : public NamespaceAccessTest {
 protected:
  PrivateNamespaceTest() : NamespaceAccessTest(true) {}
};

// Where jobs are shown as summaries, so are their namespaces; what has only config maps is not.
TEST_F(NamespaceAccessTest, P12NamespaceWithOnlyConfigMapsOfOthersIsHidden) {
  map_by(kAlice, "hers");
  ASSERT_EQ(as(kAlice, "POST", jobs_in("seen"), manifest("j")).code, 201);
  EXPECT_EQ(names(kBob, "/api/v1/namespaces"), "default seen ");
  EXPECT_EQ(names(kBob, "/api/v1/configmaps", "namespace"), "default seen ");
  EXPECT_EQ(answers(kBob, "hers"), answers(kBob, "none"));
  EXPECT_EQ(names(kAlice, "/api/v1/namespaces"), "default hers seen ");
  EXPECT_EQ(names(kOlga, "/api/v1/namespaces"), "default hers seen ");
  EXPECT_EQ(names(kOlga, "/api/v1/configmaps", "namespace"), "default hers hers seen ");
}

TEST_F(PrivateNamespaceTest, P12NamespaceOfOtherUsersIsHidden) {
  map_by(kAlice, "red");
  ASSERT_EQ(as(kAlice, "POST", jobs_in("blue"), manifest("j")).code, 201);
  ASSERT_EQ(as(kAlice, "POST", "/api/v1/namespaces", R"({"metadata":{"name":"green"}})").code, 201);
  EXPECT_EQ(names(kBob, "/api/v1/namespaces"), "default ");
  EXPECT_EQ(names(kBob, "/api/v1/configmaps", "namespace"), "default ");
  for (const char* ns : {"red", "blue", "green"})
    EXPECT_EQ(answers(kBob, ns), answers(kBob, "none")) << ns;
  EXPECT_EQ(names(kAlice, "/api/v1/namespaces"), "blue default green red ");
  EXPECT_EQ(as(kAlice, "GET", maps_in("blue") + "/kube-root-ca.crt").code, 200);
}

// Neither refused nor held up because of what others have in it, and closed to nobody else.
TEST_F(PrivateNamespaceTest, P12DeletionOfNamespaceIgnoresObjectsOfOtherUsers) {
  ASSERT_EQ(as(kBob, "POST", "/api/v1/namespaces", R"({"metadata":{"name":"red"}})").code, 201);
  ASSERT_EQ(as(kAlice, "POST", jobs_in("red"), manifest("hers")).code, 201);
  ASSERT_EQ(as(kBob, "POST", jobs_in("red"), manifest("his")).code, 201);
  map_by(kBob, "red");
  const auto his = view.job("red", "his")->job->id();
  feed.records(his, {core::PodsCreated{kStart, {{0, 1, 0}}}});
  EXPECT_EQ(as(kBob, "DELETE", "/api/v1/namespaces/red").code, 200);
  EXPECT_EQ(as(kBob, "POST", jobs_in("red"), manifest("late")).code, 403);
  EXPECT_EQ(as(kAlice, "POST", jobs_in("red"), manifest("more")).code, 201);
  ASSERT_TRUE(until([&] { return !view.job("red", "his"); }));
  EXPECT_TRUE(view.kept(core::KeptKind::name_space, "", "red")) << "its last pod has not ended";
  feed.records(his, {core::JobForgotten{kStart}});
  ASSERT_TRUE(until([&] { return !view.kept(core::KeptKind::name_space, "", "red"); }));
  EXPECT_TRUE(view.job("red", "hers") && view.job("red", "more"));
  EXPECT_EQ(as(kBob, "GET", "/api/v1/namespaces/red").code, 404);
  EXPECT_EQ(as(kAlice, "GET", "/api/v1/namespaces/red").code, 200);
}

// A namespace that nobody created does not become the first one's who deletes it.
TEST_F(NamespaceAccessTest, P12DeletingUncreatedNamespaceGivesUserNoOwnership) {
  for (const uid_t who : {kAlice, kBob}) {
    const std::string name = who == kAlice ? "hers" : "his";
    ASSERT_EQ(as(who, "POST", jobs_in("red"), manifest(name)).code, 201);
    feed.records(view.job("red", name)->job->id(), {core::PodsCreated{kStart, {{0, 1, 0}}}});
  }
  map_by(kBob, "red");
  EXPECT_EQ(as(kAlice, "DELETE", "/api/v1/namespaces/red").code, 200);
  EXPECT_FALSE(view.job("red", "hers"));
  EXPECT_TRUE(view.job("red", "his"));
  EXPECT_FALSE(view.kept(core::KeptKind::name_space, "", "red"));
  EXPECT_EQ(as(kAlice, "DELETE", "/api/v1/namespaces/red").code, 403) << "nothing is left of hers";
  EXPECT_EQ(as(kBob, "DELETE", "/api/v1/namespaces/red").code, 200);
  EXPECT_FALSE(view.job("red", "his") || view.kept(core::KeptKind::config_map, "red", "m"));
  EXPECT_EQ(as(kBob, "POST", "/api/v1/namespaces", R"({"metadata":{"name":"red"}})").code, 201);
}

TEST_F(NamespaceAccessTest, P12DeletionByOperatorReplacesDeletionByUser) {
  ASSERT_EQ(as(kBob, "POST", "/api/v1/namespaces", R"({"metadata":{"name":"red"}})").code, 201);
  ASSERT_EQ(as(kAlice, "POST", jobs_in("red"), manifest("hers")).code, 201);
  ASSERT_EQ(as(kBob, "POST", jobs_in("red"), manifest("his")).code, 201);
  feed.records(view.job("red", "his")->job->id(), {core::PodsCreated{kStart, {{0, 1, 0}}}});
  EXPECT_EQ(as(kBob, "DELETE", "/api/v1/namespaces/red").code, 200);
  ASSERT_TRUE(until([&] { return !view.job("red", "his"); }));
  EXPECT_TRUE(view.job("red", "hers"));
  EXPECT_EQ(as(kOlga, "DELETE", "/api/v1/namespaces/red").code, 200);
  ASSERT_TRUE(until([&] { return !view.job("red", "hers"); }));
  EXPECT_EQ(as(kAlice, "POST", jobs_in("red"), manifest("late")).code, 403);
}

// Pods that were orphaned belong to no job that is shown, and are deleted all the same.
TEST_F(NamespaceAccessTest, P12OrphanedPodsAreDeletedWithNamespace) {
  ASSERT_EQ(as(kAlice, "POST", jobs_in("red"), manifest("hers")).code, 201);
  const JobId id = view.job("red", "hers")->job->id();
  feed.records(id, {core::PodsCreated{kStart, {{0, 1, 0}}}});
  ASSERT_EQ(
      as(kAlice, "DELETE", jobs_in("red") + "/hers", R"({"propagationPolicy":"Orphan"})").code,
      200);
  const auto runs = [&] {
    const auto pod = view.find({Kind::pod, id, 0, {0, 0}});
    return pod && !pod->pod->stopping_at;
  };
  ASSERT_TRUE(runs());
  EXPECT_EQ(as(kOlga, "DELETE", "/api/v1/namespaces/red").code, 200);
  EXPECT_TRUE(until([&] { return !runs(); }));
}

TEST_F(AccessTest, P12DemandIsOfOwnJobs) {
  created_by(kAlice, "j");
  pod_of(100, "j");
  const std::string path = "/apis/muster.dev/v1/demand";
  EXPECT_EQ(as(kBob, "GET", path).json()["items"], Json::array());
  for (const uid_t one : {kAlice, kOlga}) {
    const Json items = as(one, "GET", path).json()["items"];
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0]["job"], "j");
  }
  EXPECT_EQ(as(kAlice, "POST", path, "{}").code, 403);
}

TEST_F(PrivateAccessTest, JobsOfOtherUsersAreNotFound) {
  created_by(kAlice, "j");
  const std::string pod = pod_of(100, "j");
  EXPECT_EQ(as(kBob, "GET", kJobs + "/j").code, 404);
  EXPECT_EQ(as(kBob, "DELETE", kJobs + "/j").code, 404);
  EXPECT_EQ(as(kBob, "GET", kPods + "/" + pod + "/log").code, 404);
  EXPECT_EQ(as(kBob, "GET", "/apis/batch/v1/jobs").json()["items"].size(), 0u);
  // Nor does a review distinguish a hidden job from a missing one.
  auto review = [this](const std::string& job) {
    return as(kBob, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
              R"({"spec":{"resourceAttributes":{"verb":"get","group":"batch","resource":"jobs",)"
              R"("namespace":"default","name":")" +
                  job + R"("}}})")
        .json()["status"];
  };
  EXPECT_EQ(review("j"), review("no-such-job"));
  const std::string elsewhere = "/apis/batch/v1/namespaces/lab/jobs";
  EXPECT_EQ(as(kAlice, "POST", elsewhere, manifest("k")).code, 201);
  EXPECT_EQ(as(kAlice, "GET", "/api/v1/namespaces").json()["items"].size(), 2u);
  EXPECT_EQ(as(kBob, "GET", "/api/v1/namespaces").json()["items"].size(), 1u);
  EXPECT_EQ(as(kOlga, "GET", "/apis/batch/v1/jobs").json()["items"].size(), 2u);
}

class P10UsersWatches : public AccessTest {
 protected:
  P10UsersWatches() : AccessTest(false, {}, [](ServerOptions& o) { o.watches_max = 8; }) {}
};

TEST_F(P10UsersWatches, WatchesOfOneUserLeaveRoomForOthers) {
  const std::string watch = kJobs + "?watch=1";
  std::vector<kj::Own<Client>> held;
  for (const uid_t who : {kAlice, kAlice, kBob}) {
    uid = who;
    held.push_back(connect(request("GET", watch)));
    char first = 0;
    held.back()->stream->read(&first, 1).wait(io.waitScope);
  }
  const Answer refused = as(kAlice, "GET", watch);
  EXPECT_TRUE(refused.is_status("TooManyRequests")) << refused.body;
  EXPECT_EQ(as(kAlice, "GET", kJobs).code, 200);
  uid = kBob;
  auto another = connect(request("GET", watch));
  std::string head(12, ' ');
  another->stream->read(head.data(), head.size()).wait(io.waitScope);
  EXPECT_EQ(head, "HTTP/1.1 200");
}

class P10WatchMemory : public AccessTest {
 protected:
  P10WatchMemory() : AccessTest(false, {}, [](ServerOptions& o) { o.watch_memory_max = 2048; }) {}
};

// The start of a watch remembers each object until it has been sent.
TEST_F(P10WatchMemory, WatchOfTooManyObjectsIsRefused) {
  const std::string watch = "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1";
  created_by(kAlice, "j");
  feed.records(100, {core::PodsCreated{kStart, {{0, 2, 0}}}});
  EXPECT_EQ(as(kAlice, "GET", watch).code, 200);
  feed.records(100, {core::PodsCreated{kStart, {{2, 98, 0}}}});
  const Answer refused = as(kAlice, "GET", watch);
  EXPECT_TRUE(refused.is_status("TooManyRequests")) << refused.body;
  EXPECT_EQ(as(kAlice, "GET", watch + "&resourceVersion=" + std::to_string(view.version())).code,
            200)
      << "one that continues remembers nothing";
}

class P10UsersBodies : public AccessTest {
 protected:
  P10UsersBodies() : AccessTest(false, {}, [](ServerOptions& o) { o.bodies_max = 1 << 20; }) {}
};

TEST_F(P10UsersBodies, UnfinishedBodiesOfOneUserLeaveRoomForOthers) {
  uid = kAlice;
  const std::string part = request("POST", kJobs, "Content-Type: application/json\r\n",
                                   manifest("half") + std::string(200'000, ' '));
  std::vector<kj::Own<Client>> held;
  const auto refused = [](const Answer& answer) {
    return answer.is_status("TooManyRequests") &&
           answer.body.find("at most 256 KiB are for one user") != std::string::npos;
  };
  const std::string large = manifest("large") + std::string(200'000, ' ');
  // Those of one moment may all be refused but one, which may be the whole one: it must not create
  // anything.
  EXPECT_TRUE(until([&] {
    held.push_back(connect(part.substr(0, part.size() - 1)));
    return refused(as(kAlice, "POST", kJobs + "?dryRun=All", large));
  }));
  const Answer others = as(kBob, "POST", kJobs, large);
  EXPECT_EQ(others.code, 201) << others.body;
}

}  // namespace
}  // namespace muster::api::testing
