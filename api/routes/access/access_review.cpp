#include "api/routes/access/access_review.hpp"

#include "api/kube/schema/fields.hpp"
#include "api/request/body.hpp"
#include "api/request/write_options.hpp"
#include "base/text/json_text.hpp"

#include <string>

namespace muster::api {
namespace {

OrderedJson review(const Exchange& exchange, const char* kind, OrderedJson status) {
  OrderedJson json = {{"kind", kind},
                      {"apiVersion", exchange.wants.group + "/v1"},
                      {"metadata", {{"creationTimestamp", nullptr}}}};
  if (exchange.wants.group == "authorization.k8s.io") json["spec"] = OrderedJson::object();
  json["status"] = std::move(status);
  return json;
}

OrderedJson list_of(std::initializer_list<std::string> words) {
  OrderedJson list = OrderedJson::array();
  for (const std::string& word : words) list.push_back(word);
  return list;
}

OrderedJson rules_json(const Caller& caller) {
  OrderedJson status;
  status["resourceRules"] = OrderedJson::array();
  for (const GrantedRule& rule : granted_rules(caller))
    status["resourceRules"].push_back(OrderedJson{{"verbs", rule.verbs},
                                                  {"apiGroups", list_of({rule.group})},
                                                  {"resources", list_of({rule.resource})}});
  status["nonResourceRules"] = OrderedJson::array();
  for (const std::string& path : granted_paths(caller))
    status["nonResourceRules"].push_back(
        OrderedJson{{"verbs", list_of({"get"})}, {"nonResourceURLs", list_of({path})}});
  status["incomplete"] = false;
  return status;
}

OrderedJson user_json(const Caller& caller) {
  OrderedJson user;
  user["username"] = caller.who.name;
  user["uid"] = std::to_string(caller.who.uid);
  user["groups"] = caller.groups;
  user["extra"]["muster.dev/role"] = list_of({name(caller.role)});
  return {{"userInfo", std::move(user)}};
}

// What a SelfSubjectAccessReview asks about.
Result<Attributes> question(const Json& document) {
  Attributes asked;
  const Json* resource = find_path(document, {"spec", "resourceAttributes"});
  const Json* path = find_path(document, {"spec", "nonResourceAttributes"});
  if ((resource == nullptr) == (path == nullptr))
    return invalid("spec: exactly one of resourceAttributes and nonResourceAttributes is needed");
  if (path) {
    asked.path = path->value("path", "");
    asked.verb = path->value("verb", "");
    return asked;
  }
  asked.verb = resource->value("verb", "");
  asked.group = resource->value("group", "");
  asked.resource = resource->value("resource", "");
  asked.subresource = resource->value("subresource", "");
  asked.ns = resource->value("namespace", "");
  asked.name = resource->value("name", "");
  return asked;
}

kj::Promise<void> answer_question(Exchange& exchange, const AccessGate& gate,
                                  const std::string& body) {
  auto text = body_json(body, exchange.content_type);
  if (!text.ok()) return exchange.bad(text.error().message);
  auto parsed = parse_json(*text);
  if (!parsed.ok()) return exchange.bad(parsed.error().message);
  if (auto known = conform(parsed->value, "SelfSubjectAccessReview"); !known.ok())
    return exchange.bad(known.error().message);
  const auto asked = question(parsed->value);
  if (!asked.ok()) return exchange.bad(asked.error().message);
  const Decision decision = gate.judge(exchange.caller, *asked);
  // A hidden object is treated as nonexistent: the caller could do this to an object of its own.
  const bool hidden = decision.access == Access::hidden;
  OrderedJson status = {{"allowed", decision.ok() || hidden}};
  if (!decision.reason.empty() && !hidden) status["reason"] = decision.reason;
  return exchange.send(
      201, dumped(review(exchange, "SelfSubjectAccessReview", std::move(status))) + "\n");
}

}  // namespace

bool is_access_review(const Url& url) {
  const std::vector<std::string>& p = url.path;
  if (p.size() != 4 || p[0] != "apis" || p[2] != "v1") return false;
  if (p[1] == "authentication.k8s.io") return p[3] == "selfsubjectreviews";
  return p[1] == "authorization.k8s.io" &&
         (p[3] == "selfsubjectaccessreviews" || p[3] == "selfsubjectrulesreviews");
}

kj::Promise<void> answer_access_review(Exchange& exchange, const AccessGate& gate) {
  if (exchange.method != kj::HttpMethod::POST) {
    exchange.headers.push_back({"Allow", "POST"});
    return exchange.send_status(405, "MethodNotAllowed", "an access review can only be created");
  }
  const std::string& what = exchange.wants.resource;
  if (what == "selfsubjectreviews")
    return exchange.send(
        201, dumped(review(exchange, "SelfSubjectReview", user_json(exchange.caller))) + "\n");
  if (what == "selfsubjectrulesreviews")
    return exchange.send(
        201,
        dumped(review(exchange, "SelfSubjectRulesReview", rules_json(exchange.caller))) + "\n");
  return exchange.read_body().then(
      [&exchange, &gate](kj::Maybe<std::string> body) -> kj::Promise<void> {
        KJ_IF_MAYBE (text, body) return answer_question(exchange, gate, *text);
        return kj::READY_NOW;  // an error has already been sent
      });
}

}  // namespace muster::api
