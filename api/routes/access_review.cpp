#include "api/routes/access_review.hpp"

namespace muster::api {
namespace {

OrderedJson review(const char* kind, OrderedJson status) {
  OrderedJson json = {{"kind", kind},
                      {"apiVersion", "authorization.k8s.io/v1"},
                      {"metadata", {{"creationTimestamp", nullptr}}},
                      {"spec", OrderedJson::object()}};
  json["status"] = std::move(status);
  return json;
}

OrderedJson all_rules() {
  const OrderedJson all = OrderedJson::array({"*"});
  OrderedJson status;
  status["resourceRules"] =
      OrderedJson::array({OrderedJson{{"verbs", all}, {"apiGroups", all}, {"resources", all}}});
  status["nonResourceRules"] =
      OrderedJson::array({OrderedJson{{"verbs", all}, {"nonResourceURLs", all}}});
  status["incomplete"] = false;
  return status;
}

}  // namespace

bool is_access_review(const Url& url) {
  const std::vector<std::string>& p = url.path;
  return p.size() == 4 && p[0] == "apis" && p[1] == "authorization.k8s.io" && p[2] == "v1" &&
         (p[3] == "selfsubjectaccessreviews" || p[3] == "selfsubjectrulesreviews");
}

kj::Promise<void> answer_access_review(Exchange& exchange) {
  if (exchange.method != kj::HttpMethod::POST) {
    exchange.headers.push_back({"Allow", "POST"});
    return exchange.send_status(405, "MethodNotAllowed", "an access review can only be created");
  }
  const bool rules = exchange.url.path[3] == "selfsubjectrulesreviews";
  const OrderedJson answer =
      rules ? review("SelfSubjectRulesReview", all_rules())
            : review("SelfSubjectAccessReview",
                     {{"allowed", true}, {"reason", "whoever reaches this API may do everything"}});
  return exchange.send(201, dumped(answer) + "\n");
}

}  // namespace muster::api
