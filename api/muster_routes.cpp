// What muster serves beyond Kubernetes' own: group muster.dev/v1, read-only, beside each job.
#include "api/routes.hpp"

namespace muster::api {

bool Routes::is_muster(const Url& url) {
  const std::vector<std::string>& p = url.path;
  return p.size() == 8 && p[0] == "apis" && p[1] == "muster.dev" && p[2] == "v1" &&
         p[3] == "namespaces" && p[5] == "jobs" &&
         (p[7] == "attempts" || p[7] == "log" || p[7] == "why");
}

kj::Promise<void> Routes::answer_muster(Exchange& exchange) {
  if (exchange.method != kj::HttpMethod::GET) return not_allowed(exchange);
  const std::vector<std::string>& p = exchange.url.path;
  const auto shown = view_.job(p[4], p[6]);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", p[6]);
  if (p[7] == "attempts") return attempts(exchange, *shown);
  if (p[7] == "log") return attempt_log(exchange, *shown);
  return why(exchange, *shown);
}

}  // namespace muster::api
