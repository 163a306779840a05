#include "api/access/rules.hpp"

#include "api/http/words.hpp"
#include "core/job/shown/hold_text.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace muster::api {
namespace {

// Which objects of a kind the role `user` may act on; operators may act on everyone's.
enum class Reach : uint8_t {
  admins,      // admins only
  none,        // operators only
  self,        // only the caller's own, even for operators
  owner,       // likewise, but others' objects may also be hidden
  own,         // the user's own; collections contain nothing else
  summarized,  // likewise, but others' are shown as summaries
  all,
};

struct Rule {
  std::string_view group, resource;
  std::string_view subresource;  // "*": any, or none
  std::string_view verbs;        // separated by spaces; "*": any
  Reach user = Reach::none;
};

constexpr std::string_view kRead = "get list watch";

// The first matching row decides.
constexpr Rule kRules[] = {
    {"batch", "jobs", "", kRead, Reach::summarized},
    {"batch", "jobs", "", "create", Reach::all},
    {"batch", "jobs", "", "update patch delete deletecollection", Reach::own},
    {"batch", "jobs", "status", "get update patch", Reach::own},
    {"batch", "jobs", "scale", "get update patch", Reach::own},
    {"batch", "cronjobs", "", kRead, Reach::own},
    {"batch", "cronjobs", "", "create update patch delete deletecollection", Reach::own},
    {"batch", "cronjobs", "status", "get update patch", Reach::own},
    {"", "pods", "", "get list watch delete deletecollection update patch", Reach::own},
    {"", "pods", "status", "get update patch", Reach::own},
    {"", "pods", "log", "get", Reach::own},
    {"", "pods", "eviction", "create", Reach::own},
    // Commands run as the owner of the job.
    {"", "pods", "exec", "get create", Reach::owner},
    // Not served; allowed so that users see the reason.
    {"", "pods", "attach", "get create", Reach::own},
    {"", "pods", "portforward", "get create", Reach::own},
    {"", "pods", "ephemeralcontainers", "get update patch", Reach::own},
    {"", "pods", "", "create", Reach::all},
    // Always empty.
    {"", "services", "", kRead, Reach::all},
    {"policy", "poddisruptionbudgets", "", kRead, Reach::all},
    {"", "events", "", kRead, Reach::own},
    {"events.k8s.io", "events", "", kRead, Reach::own},
    {"", "nodes", "", kRead, Reach::all},
    {"", "nodes", "status", "get", Reach::all},
    {"", "configmaps", "", kRead, Reach::own},
    {"", "configmaps", "", "create update patch delete deletecollection", Reach::own},
    {"", "serviceaccounts", "", kRead, Reach::all},
    {"", "namespaces", "", kRead, Reach::summarized},
    {"", "namespaces", "", "create", Reach::all},
    {"", "namespaces", "", "update patch delete", Reach::own},
    {"", "namespaces", "status", "get update patch", Reach::own},
    {"", "namespaces", "finalize", "update", Reach::none},
    {"scheduling.k8s.io", "priorityclasses", "", kRead, Reach::all},
    {"muster.dev", "queues", "", kRead, Reach::all},
    {"muster.dev", "jobs", "indexes", "get", Reach::own},
    {"muster.dev", "jobs", "attempts", "get", Reach::own},
    {"muster.dev", "jobs", "log", "get", Reach::own},
    {"muster.dev", "jobs", "why", "get", Reach::own},
    {"muster.dev", "jobs", "usage", "get", Reach::own},
    {"muster.dev", "jobs", "cancel", "update", Reach::own},
    // Further limited by keeps_hold().
    {"muster.dev", "jobs", "hold", "update delete", Reach::own},
    {"muster.dev", "jobs", "overrides", "patch", Reach::none},
    // Commands run as the owner of the job.
    {"muster.dev", "pods", "exec", "get create update delete", Reach::owner},
    {"muster.dev", "nodes", "", "list", Reach::all},
    // Of a user's own jobs only (demand_items).
    {"muster.dev", "demand", "", "list", Reach::all},
    {"muster.dev", "shares", "", "list", Reach::all},
    // A user's own jobs only, also those that are gone: HistoryRoutes shows no others.
    {"muster.dev", "history", "", "list", Reach::all},
    {"muster.dev", "history", "attempts", "get", Reach::all},
    {"muster.dev", "report", "", "list", Reach::all},
    {"muster.dev", "links", "", "list", Reach::all},
    {"muster.dev", "coordinators", "", "list", Reach::all},
    {"muster.dev", "users", "token", "create", Reach::self},
    {"muster.dev", "tokens", "", "list delete", Reach::self},
    {"muster.dev", "nodes", "token", "create", Reach::admins},
    {"muster.dev", "nodes", "revocation", "create", Reach::admins},
    {"muster.dev", "nodes", "claims", "get create", Reach::admins},
    {"muster.dev", "pools", "token", "create", Reach::admins},
    {"muster.dev", "coordinators", "token", "create", Reach::admins},
    // Operators only.
    {"", "nodes", "*", "update patch delete create", Reach::none},
    {"", "events", "*", "*", Reach::none},
    {"events.k8s.io", "events", "*", "*", Reach::none},
    {"coordination.k8s.io", "leases", "*", "*", Reach::none},
    {"scheduling.k8s.io", "priorityclasses", "*", "*", Reach::none},
    {"muster.dev", "nodes", "unknownpods", "delete", Reach::none},
    {"muster.dev", "queues", "*", "*", Reach::none},
    {"muster.dev", "coordinators", "", "delete", Reach::none},
    {"muster.dev", "coordinators", "promotion", "create", Reach::none},
    {"muster.dev", "coordinators", "demotion", "create", Reach::none},
    {"muster.dev", "backups", "", "create", Reach::none},
    {"muster.dev", "verification", "", "list", Reach::none},
};

// What everyone with a role may ask about themselves.
struct Review {
  std::string_view group, resource;
};
constexpr Review kSelfReviews[] = {{"authorization.k8s.io", "selfsubjectaccessreviews"},
                                   {"authorization.k8s.io", "selfsubjectrulesreviews"},
                                   {"authentication.k8s.io", "selfsubjectreviews"}};

constexpr const char* kNoRole = "the user has no role here";
constexpr const char* kMetricsOnly =
    "the metrics role may read only /metrics and the health endpoints";
constexpr const char* kOfAnother = "it belongs to another user";

const Rule* rule_for(const Attributes& request) {
  for (const Rule& rule : kRules)
    if (rule.group == request.group && rule.resource == request.resource &&
        (rule.subresource == "*" || rule.subresource == request.subresource) &&
        (rule.verbs == "*" || has_word(rule.verbs, request.verb)))
      return &rule;
  return nullptr;
}

bool is_self_review(const Attributes& request) {
  return request.verb == "create" && request.name.empty() &&
         std::any_of(std::begin(kSelfReviews), std::end(kSelfReviews), [&](const auto& review) {
           return review.group == request.group && review.resource == request.resource;
         });
}

Decision denied(std::string reason) {
  return {Access::denied, std::move(reason)};
}

// Paths that are not resources: health for everyone, metrics for operators and the metrics role,
// documents and the web page for operators and users.
Decision of_path(const Caller& caller, const Attributes& request) {
  const std::string& path = request.path;
  if (request.verb == "get" && (path == "/healthz" || path == "/livez" || path == "/readyz"))
    return {Access::allowed, ""};
  if (caller.role == Role::none) return denied(kNoRole);
  if (path == "/metrics" && caller.role == Role::user)
    return denied("only operators and the metrics group may read metrics");
  if (caller.role == Role::metrics && path != "/metrics") return denied(kMetricsOnly);
  return {Access::allowed, ""};
}

Decision of_other_user(const Rule& rule, const AccessRules& rules) {
  if (rules.private_jobs) return {Access::hidden, kOfAnother};
  if (rule.user == Reach::summarized) return {Access::summary, ""};
  return denied(kOfAnother);
}

}  // namespace

const char* name(Role role) {
  switch (role) {
    case Role::none:
      return "none";
    case Role::metrics:
      return "metrics";
    case Role::user:
      return "user";
    case Role::operators:
      return "operator";
    case Role::admin:
      return "admin";
  }
  return "";
}

Decision authorize(const Caller& caller, const Attributes& request, Whose whose,
                   const AccessRules& rules) {
  if (caller.role == Role::admin) return {Access::allowed, ""};
  if (request.resource.empty()) return of_path(caller, request);
  if (caller.role == Role::none) return denied(kNoRole);
  if (is_self_review(request)) return {Access::allowed, ""};
  if (caller.role == Role::metrics) return denied(kMetricsOnly);
  const Rule* rule = rule_for(request);
  if (rule == nullptr) return denied("no rule allows it");
  if (rule->user == Reach::admins) return denied("only admins may do that");
  if (rule->user == Reach::self && whose == Whose::other) return denied(kOfAnother);
  if (rule->user == Reach::owner && whose == Whose::other && caller.role == Role::operators)
    return denied(kOfAnother);
  if (caller.role == Role::operators) return {Access::allowed, ""};
  if (rule->user == Reach::none) return denied("only operators may do that");
  if (rule->user != Reach::all && whose == Whose::other) return of_other_user(*rule, rules);
  return {Access::allowed, ""};
}

std::optional<std::string> keeps_hold(const Caller& caller, const core::JobHeld& hold) {
  if (!hold.by_operator || caller.unlimited()) return std::nullopt;
  return core::hold_text(hold);
}

std::vector<GrantedRule> granted_rules(const Caller& caller) {
  if (caller.role == Role::admin) return {{{"*"}, "*", "*"}};
  std::vector<GrantedRule> granted;
  for (const Review& review : kSelfReviews)
    granted.push_back({{"create"}, std::string(review.group), std::string(review.resource)});
  const bool operates = caller.role == Role::operators;
  if (!operates && caller.role != Role::user) return granted;
  for (const Rule& rule : kRules) {
    if (rule.user == Reach::admins || (!operates && rule.user == Reach::none)) continue;
    GrantedRule one{words(rule.verbs), std::string(rule.group), std::string(rule.resource)};
    if (!rule.subresource.empty()) one.resource += "/" + std::string(rule.subresource);
    granted.push_back(std::move(one));
  }
  return granted;
}

std::vector<std::string> granted_paths(const Caller& caller) {
  switch (caller.role) {
    case Role::admin:
    case Role::operators:
      return {"*"};
    case Role::user:
      return {"/",        "/api",   "/api/*",     "/apis",   "/apis/*",
              "/healthz", "/livez", "/openapi/*", "/readyz", "/version"};
    case Role::metrics:
      return {"/healthz", "/livez", "/metrics", "/readyz"};
    case Role::none:
      break;
  }
  return {"/healthz", "/livez", "/readyz"};
}

std::string forbidden_text(const Caller& caller, const Attributes& request,
                           const std::string& reason) {
  const std::string user =
      caller.who.name.empty() ? "uid " + std::to_string(caller.who.uid) : caller.who.name;
  std::string text;
  if (request.resource.empty()) {
    text = "forbidden: User \"" + user + "\" cannot " + request.verb + " path \"" + request.path +
           "\"";
  } else {
    const std::string full = request.resource + (request.group.empty() ? "" : "." + request.group);
    text =
        full + (request.name.empty() ? "" : " \"" + request.name + "\"") +
        " is forbidden: User \"" + user + "\" cannot " + request.verb + " resource \"" +
        request.resource + (request.subresource.empty() ? "" : "/" + request.subresource) +
        "\" in API group \"" + request.group + "\"" +
        (request.ns.empty() ? " at the cluster scope" : " in the namespace \"" + request.ns + "\"");
  }
  return reason.empty() ? text : text + ": " + reason;
}

}  // namespace muster::api
