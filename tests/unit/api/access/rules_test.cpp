// Who may do what: every route for every role, with an object of the caller's own and one of
// another user. Routes missing here are denied to everyone but admins, which is tested too.
#include "api/access/rules.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster::api {
namespace {

struct Row {
  const char* method;
  const char* path;
  // One letter each for a user's own object; another user's; another user's where jobs are private;
  // an operator; metrics; no role. a: allowed, s: summary, d: denied, h: hidden.
  const char* expected;
};

constexpr Row kRows[] = {
    {"GET", "/healthz", "aaaaaa"},
    {"GET", "/livez", "aaaaaa"},
    {"GET", "/readyz", "aaaaaa"},
    {"GET", "/metrics", "dddaad"},
    {"GET", "/", "aaaadd"},
    {"GET", "/version", "aaaadd"},
    {"GET", "/api", "aaaadd"},
    {"GET", "/api/v1", "aaaadd"},
    {"GET", "/apis/batch/v1", "aaaadd"},
    {"GET", "/openapi/v3/apis/batch/v1", "aaaadd"},
    {"GET", "/apis/batch/v1/jobs", "aaaadd"},
    {"GET", "/apis/batch/v1/jobs?watch=1", "aaaadd"},
    {"GET", "/apis/batch/v1/namespaces/default/jobs", "aaaadd"},
    {"POST", "/apis/batch/v1/namespaces/default/jobs", "aaaadd"},
    {"DELETE", "/apis/batch/v1/namespaces/default/jobs", "aaaadd"},
    {"GET", "/apis/batch/v1/namespaces/default/jobs/j", "ashadd"},
    {"PUT", "/apis/batch/v1/namespaces/default/jobs/j", "adhadd"},
    {"PATCH", "/apis/batch/v1/namespaces/default/jobs/j", "adhadd"},
    {"DELETE", "/apis/batch/v1/namespaces/default/jobs/j", "adhadd"},
    {"GET", "/apis/batch/v1/namespaces/default/jobs/j/status", "adhadd"},
    {"PUT", "/apis/batch/v1/namespaces/default/jobs/j/status", "adhadd"},
    {"PATCH", "/apis/batch/v1/namespaces/default/jobs/j/status", "adhadd"},
    {"GET", "/apis/batch/v1/namespaces/default/jobs/j/scale", "adhadd"},
    {"PUT", "/apis/batch/v1/namespaces/default/jobs/j/scale", "adhadd"},
    {"PATCH", "/apis/batch/v1/namespaces/default/jobs/j/scale", "adhadd"},
    {"GET", "/api/v1/pods", "aaaadd"},
    {"GET", "/api/v1/pods?watch=1", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/pods", "aaaadd"},
    {"DELETE", "/api/v1/namespaces/default/pods", "aaaadd"},
    {"POST", "/api/v1/namespaces/default/pods", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/pods/p", "adhadd"},
    {"PUT", "/api/v1/namespaces/default/pods/p", "adhadd"},
    {"PATCH", "/api/v1/namespaces/default/pods/p", "adhadd"},
    {"DELETE", "/api/v1/namespaces/default/pods/p", "adhadd"},
    {"GET", "/api/v1/namespaces/default/pods/p/status", "adhadd"},
    {"PUT", "/api/v1/namespaces/default/pods/p/status", "adhadd"},
    {"PATCH", "/api/v1/namespaces/default/pods/p/status", "adhadd"},
    {"GET", "/api/v1/namespaces/default/pods/p/log", "adhadd"},
    {"POST", "/api/v1/namespaces/default/pods/p/eviction", "adhadd"},
    {"POST", "/api/v1/namespaces/default/pods/p/exec", "adhddd"},
    {"GET", "/api/v1/namespaces/default/pods/p/exec", "adhddd"},
    {"GET", "/api/v1/namespaces/default/pods/p/attach", "adhadd"},
    {"POST", "/api/v1/namespaces/default/pods/p/attach", "adhadd"},
    {"GET", "/api/v1/namespaces/default/pods/p/portforward", "adhadd"},
    {"POST", "/api/v1/namespaces/default/pods/p/portforward", "adhadd"},
    {"PATCH", "/api/v1/namespaces/default/pods/p/ephemeralcontainers", "adhadd"},
    {"GET", "/api/v1/namespaces/default/pods/p/ephemeralcontainers", "adhadd"},
    {"PUT", "/api/v1/namespaces/default/pods/p/ephemeralcontainers", "adhadd"},
    {"GET", "/api/v1/events", "aaaadd"},
    {"GET", "/api/v1/events?watch=1", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/events", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/events/e", "adhadd"},
    {"POST", "/api/v1/namespaces/default/events", "dddadd"},
    {"PUT", "/api/v1/namespaces/default/events/e", "dddadd"},
    {"PATCH", "/api/v1/namespaces/default/events/e", "dddadd"},
    {"DELETE", "/api/v1/namespaces/default/events/e", "dddadd"},
    {"DELETE", "/api/v1/namespaces/default/events", "dddadd"},
    {"GET", "/apis/events.k8s.io/v1/events", "aaaadd"},
    {"GET", "/apis/events.k8s.io/v1/events?watch=1", "aaaadd"},
    {"GET", "/apis/events.k8s.io/v1/namespaces/default/events/e", "adhadd"},
    {"POST", "/apis/events.k8s.io/v1/namespaces/default/events", "dddadd"},
    {"PUT", "/apis/events.k8s.io/v1/namespaces/default/events/e", "dddadd"},
    {"PATCH", "/apis/events.k8s.io/v1/namespaces/default/events/e", "dddadd"},
    {"DELETE", "/apis/events.k8s.io/v1/namespaces/default/events/e", "dddadd"},
    {"DELETE", "/apis/events.k8s.io/v1/namespaces/default/events", "dddadd"},
    {"GET", "/apis/coordination.k8s.io/v1/leases", "dddadd"},
    {"GET", "/apis/coordination.k8s.io/v1/leases?watch=1", "dddadd"},
    {"GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", "dddadd"},
    {"POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "dddadd"},
    {"PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", "dddadd"},
    {"PATCH", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", "dddadd"},
    {"DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", "dddadd"},
    {"DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "dddadd"},
    {"GET", "/apis/muster.dev/v1/queues", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/queues?watch=1", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/queues/x", "aaaadd"},
    {"POST", "/apis/muster.dev/v1/queues", "dddadd"},
    {"PUT", "/apis/muster.dev/v1/queues/x", "dddadd"},
    {"PATCH", "/apis/muster.dev/v1/queues/x", "dddadd"},
    {"DELETE", "/apis/muster.dev/v1/queues/x", "dddadd"},
    {"DELETE", "/apis/muster.dev/v1/queues", "dddadd"},
    {"GET", "/apis/scheduling.k8s.io/v1/priorityclasses", "aaaadd"},
    {"GET", "/apis/scheduling.k8s.io/v1/priorityclasses?watch=1", "aaaadd"},
    {"GET", "/apis/scheduling.k8s.io/v1/priorityclasses/x", "aaaadd"},
    {"POST", "/apis/scheduling.k8s.io/v1/priorityclasses", "dddadd"},
    {"PUT", "/apis/scheduling.k8s.io/v1/priorityclasses/x", "dddadd"},
    {"PATCH", "/apis/scheduling.k8s.io/v1/priorityclasses/x", "dddadd"},
    {"DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/x", "dddadd"},
    {"DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses", "dddadd"},
    {"GET", "/api/v1/nodes", "aaaadd"},
    {"GET", "/api/v1/nodes?watch=1", "aaaadd"},
    {"GET", "/api/v1/nodes/n", "aaaadd"},
    {"GET", "/api/v1/nodes/n/status", "aaaadd"},
    {"PUT", "/api/v1/nodes/n", "dddadd"},
    {"PATCH", "/api/v1/nodes/n", "dddadd"},
    {"DELETE", "/api/v1/nodes/n", "dddadd"},
    {"POST", "/api/v1/nodes", "dddadd"},
    {"GET", "/api/v1/namespaces", "aaaadd"},
    {"GET", "/api/v1/namespaces?watch=1", "aaaadd"},
    {"GET", "/api/v1/namespaces/x", "ashadd"},
    {"POST", "/api/v1/namespaces", "aaaadd"},
    {"PUT", "/api/v1/namespaces/x", "adhadd"},
    {"PATCH", "/api/v1/namespaces/x", "adhadd"},
    {"DELETE", "/api/v1/namespaces/x", "adhadd"},
    {"GET", "/api/v1/namespaces/x/status", "adhadd"},
    {"PUT", "/api/v1/namespaces/x/status", "adhadd"},
    {"PATCH", "/api/v1/namespaces/x/status", "adhadd"},
    {"PUT", "/api/v1/namespaces/x/finalize", "dddadd"},
    {"GET", "/apis/batch/v1/cronjobs", "aaaadd"},
    {"GET", "/apis/batch/v1/cronjobs?watch=1", "aaaadd"},
    {"GET", "/apis/batch/v1/namespaces/default/cronjobs", "aaaadd"},
    {"POST", "/apis/batch/v1/namespaces/default/cronjobs", "aaaadd"},
    {"DELETE", "/apis/batch/v1/namespaces/default/cronjobs", "aaaadd"},
    {"GET", "/apis/batch/v1/namespaces/default/cronjobs/c", "adhadd"},
    {"PUT", "/apis/batch/v1/namespaces/default/cronjobs/c", "adhadd"},
    {"PATCH", "/apis/batch/v1/namespaces/default/cronjobs/c", "adhadd"},
    {"DELETE", "/apis/batch/v1/namespaces/default/cronjobs/c", "adhadd"},
    {"GET", "/apis/batch/v1/namespaces/default/cronjobs/c/status", "adhadd"},
    {"PUT", "/apis/batch/v1/namespaces/default/cronjobs/c/status", "adhadd"},
    {"PATCH", "/apis/batch/v1/namespaces/default/cronjobs/c/status", "adhadd"},
    {"GET", "/api/v1/configmaps", "aaaadd"},
    {"GET", "/api/v1/configmaps?watch=1", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/configmaps", "aaaadd"},
    {"POST", "/api/v1/namespaces/default/configmaps", "aaaadd"},
    {"DELETE", "/api/v1/namespaces/default/configmaps", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/configmaps/c", "adhadd"},
    {"PUT", "/api/v1/namespaces/default/configmaps/c", "adhadd"},
    {"PATCH", "/api/v1/namespaces/default/configmaps/c", "adhadd"},
    {"DELETE", "/api/v1/namespaces/default/configmaps/c", "adhadd"},
    {"GET", "/api/v1/serviceaccounts", "aaaadd"},
    {"GET", "/api/v1/serviceaccounts?watch=1", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/serviceaccounts/default", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/services", "aaaadd"},
    {"GET", "/api/v1/namespaces/default/services/s", "aaaadd"},
    {"GET", "/api/v1/services?watch=1", "aaaadd"},
    {"GET", "/apis/policy/v1/poddisruptionbudgets", "aaaadd"},
    {"GET", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b", "aaaadd"},
    {"GET", "/apis/policy/v1/poddisruptionbudgets?watch=1", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/indexes", "adhadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/attempts", "adhadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/log", "adhadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/why", "adhadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/usage", "adhadd"},
    {"PUT", "/apis/muster.dev/v1/namespaces/default/jobs/j/cancel", "adhadd"},
    {"PUT", "/apis/muster.dev/v1/namespaces/default/jobs/j/hold", "adhadd"},
    {"DELETE", "/apis/muster.dev/v1/namespaces/default/jobs/j/hold", "adhadd"},
    {"PATCH", "/apis/muster.dev/v1/namespaces/default/jobs/j/overrides", "dddadd"},
    {"POST", "/apis/muster.dev/v1/namespaces/default/pods/p/exec", "adhddd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/pods/p/exec?session=s", "adhddd"},
    {"DELETE", "/apis/muster.dev/v1/namespaces/default/pods/p/exec?session=s", "adhddd"},
    {"PUT", "/apis/muster.dev/v1/namespaces/default/pods/p/exec?session=s&offset=0", "adhddd"},
    {"PATCH", "/apis/muster.dev/v1/namespaces/default/pods/p/exec", "dddddd"},
    {"GET", "/apis/muster.dev/v1/nodes", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/demand", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/shares", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/history", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/report", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/history", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/report", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/history/0/attempts", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/links", "aaaadd"},
    {"GET", "/apis/muster.dev/v1/tokens", "aaaadd"},
    {"DELETE", "/apis/muster.dev/v1/tokens/t", "addddd"},
    {"POST", "/apis/muster.dev/v1/users/u/token", "addddd"},
    {"POST", "/apis/muster.dev/v1/nodes/n/token", "dddddd"},
    {"POST", "/apis/muster.dev/v1/pools/p/token", "dddddd"},
    {"DELETE", "/apis/muster.dev/v1/nodes/n/unknownpods", "dddadd"},
    {"POST", "/apis/muster.dev/v1/nodes/n/revocation", "dddddd"},
    {"GET", "/apis/muster.dev/v1/nodes/n/claims", "dddddd"},
    {"POST", "/apis/muster.dev/v1/nodes/n/claims", "dddddd"},
    {"GET", "/apis/muster.dev/v1/coordinators", "aaaadd"},
    {"DELETE", "/apis/muster.dev/v1/coordinators/head2:7119", "dddadd"},
    {"POST", "/apis/muster.dev/v1/coordinators/head2:7119/promotion", "dddadd"},
    {"POST", "/apis/muster.dev/v1/coordinators/head2:7119/demotion", "dddadd"},
    {"POST", "/apis/muster.dev/v1/coordinators/head2:7119/token", "dddddd"},
    {"POST", "/apis/muster.dev/v1/backups", "dddadd"},
    {"GET", "/apis/muster.dev/v1/verification", "dddadd"},
    {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "aaaaad"},
    {"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "aaaaad"},
    {"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "aaaaad"},
    // Not served, so not in any rule.
    {"GET", "/api/v1/secrets", "dddddd"},
    {"POST", "/apis/apps/v1/namespaces/default/deployments", "dddddd"},
    {"GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/secrets", "dddddd"},
    {"TRACE", "/apis/batch/v1/namespaces/default/jobs/j", "dddddd"},
};

char letter(const Decision& decision) {
  switch (decision.access) {
    case Access::allowed:
      return 'a';
    case Access::summary:
      return 's';
    case Access::denied:
      return 'd';
    case Access::hidden:
      return 'h';
  }
  return '?';
}

Caller caller(Role role) {
  Caller c;
  c.role = role;
  c.who = {1001, 1001, "alice"};
  c.distinguished = true;
  return c;
}

TEST(AccessRules, AuthorizeEachRouteByRoleAndOwner) {
  for (const Row& row : kRows) {
    const auto url = Url::parse(row.path);
    ASSERT_TRUE(url);
    const Attributes wants = Attributes::of(row.method, *url);
    // A collection has no owner.
    auto whose = [&wants](Whose w) { return wants.name.empty() ? Whose::nobody : w; };
    std::string got;
    got += letter(authorize(caller(Role::user), wants, whose(Whose::own), {}));
    got += letter(authorize(caller(Role::user), wants, whose(Whose::other), {}));
    got += letter(authorize(caller(Role::user), wants, whose(Whose::other), {true}));
    got += letter(authorize(caller(Role::operators), wants, whose(Whose::other), {true}));
    got += letter(authorize(caller(Role::metrics), wants, whose(Whose::other), {}));
    got += letter(authorize(caller(Role::none), wants, whose(Whose::own), {}));
    EXPECT_EQ(got, row.expected) << row.method << " " << row.path;
    EXPECT_EQ(letter(authorize(caller(Role::admin), wants, whose(Whose::other), {true})), 'a');
  }
}

// tests/e2e/routes.py sends the request of each row to a server, and compares the rows with the
// routes that the server lists.
TEST(AccessRules, EveryRuleHasARoute) {
  std::set<std::string> missing;
  for (const GrantedRule& rule : granted_rules(caller(Role::operators)))
    for (const std::string& verb : rule.verbs)
      missing.insert(verb + " " + rule.group + " " +
                     rule.resource.substr(0, rule.resource.find("/*")));
  for (const Row& row : kRows) {
    const Attributes wants = Attributes::of(row.method, *Url::parse(row.path));
    const std::string object = " " + wants.group + " " + wants.resource +
                               (wants.subresource.empty() ? "" : "/" + wants.subresource);
    missing.erase(wants.verb + object);
    missing.erase("*" + object);
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

TEST(AccessRules, OnlyOperatorsLiftTheHoldOfAnOperator) {
  const core::JobHeld own{1, "alice", false, "later"}, theirs{1, "olga", true, "maintenance"};
  Caller owner{.role = Role::user}, olga{.role = Role::operators}, admin{.role = Role::admin};
  for (const Caller& caller : {owner, olga, admin}) EXPECT_FALSE(keeps_hold(caller, own));
  EXPECT_EQ(keeps_hold(owner, theirs),
            "olga holds the job: maintenance; only operators can release it");
  EXPECT_FALSE(keeps_hold(olga, theirs));
  EXPECT_FALSE(keeps_hold(admin, theirs));
}

TEST(AccessRules, RefusalNamesUserVerbResourceAndReason) {
  const auto url = Url::parse("/apis/batch/v1/namespaces/default/jobs/x/scale");
  const Attributes wants = Attributes::of("PATCH", *url);
  EXPECT_EQ(forbidden_text(caller(Role::user), wants, "it belongs to another user"),
            "jobs.batch \"x\" is forbidden: User \"alice\" cannot patch resource \"jobs/scale\" in "
            "API group \"batch\" in the namespace \"default\": it belongs to another user");
  EXPECT_EQ(forbidden_text(caller(Role::user), Attributes::of("GET", *Url::parse("/metrics")), ""),
            "forbidden: User \"alice\" cannot get path \"/metrics\"");
}

TEST(AccessRules, GrantedRulesAreThoseThatAuthorizeApplies) {
  // Users are not shown rules that only operators have.
  for (const GrantedRule& rule : granted_rules(caller(Role::user)))
    for (const std::string& verb : rule.verbs) {
      Attributes wants;
      wants.verb = verb;
      wants.group = rule.group;
      wants.resource = rule.resource.substr(0, rule.resource.find('/'));
      if (wants.resource != rule.resource)
        wants.subresource = rule.resource.substr(wants.resource.size() + 1);
      EXPECT_TRUE(authorize(caller(Role::user), wants, Whose::own, {}).ok())
          << verb << " " << rule.resource;
    }
  EXPECT_EQ(granted_rules(caller(Role::none)).size(), 3u);
  EXPECT_EQ(granted_rules(caller(Role::admin)).size(), 1u);
}

TEST(AccessAttributes, AreReadAsKubernetesReadsThem) {
  auto of = [](const char* method, const char* path) {
    const Attributes a = Attributes::of(method, *Url::parse(path));
    return a.verb + "|" + a.group + "|" + a.resource + "|" + a.subresource + "|" + a.ns + "|" +
           a.name + "|" + a.path;
  };
  EXPECT_EQ(of("GET", "/api/v1/pods"), "list||pods||||");
  EXPECT_EQ(of("GET", "/api/v1/namespaces/a/pods/p/log?follow=1"), "get||pods|log|a|p|");
  EXPECT_EQ(of("GET", "/apis/batch/v1/jobs?watch=true"), "watch|batch|jobs||||");
  EXPECT_EQ(of("DELETE", "/apis/batch/v1/namespaces/a/jobs"), "deletecollection|batch|jobs||a||");
  EXPECT_EQ(of("GET", "/api/v1/namespaces/a"), "get||namespaces||a|a|");
  EXPECT_EQ(of("GET", "/api/v1/namespaces"), "list||namespaces||||");
  EXPECT_EQ(of("HEAD", "/healthz"), "get||||||/healthz");
  EXPECT_EQ(of("GET", "/"), "get||||||/");
}

}  // namespace
}  // namespace muster::api
