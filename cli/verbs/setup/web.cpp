// muster web: prints the address of the web page. Where the coordinator serves other machines over
// HTTPS, it is a link that logs in, once.
#include "cli/verbs/setup/addresses.hpp"
#include "cli/verbs/verb.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/settings/submitter.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"

#include <iostream>

namespace muster::cli {

struct WebOptions {
  Target target;
};

namespace {

// Who the coordinator takes us for; with the token of another user, that one.
Result<std::string> caller_name(ApiClient& client) {
  auto answer = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  const std::string name = text_at(answer->json, {"status", "userInfo", "username"});
  return name.empty() ? user_name() : name;  // empty: the coordinator does not tell users apart
}

// A link that logs in.
int print_link(ApiClient& client, const std::string& address) {
  const auto name = caller_name(client);
  if (!name) return fail(name.error());
  auto answer = client.post("/apis/muster.dev/v1/users/" + url_encoded(*name) + "/token",
                            R"({"login":true})");
  if (!answer) return fail(answer.error());
  if (!answer->ok()) return fail(refusal(*answer));
  std::cout << address << "/#login=" << text_at(answer->json, {"code"}) << std::endl;
  std::cerr << "the link works once, until " << text_at(answer->json, {"expirationTimestamp"})
            << std::endl;
  return kDone;
}

}  // namespace

int execute(const WebOptions& options) {
  auto target = narrowed(options.target);  // a link names one server
  if (!target) return fail(target.error());
  const std::string& api = target->api;
  const auto client = connect(*target);
  if (api.starts_with(kHttps)) return print_link(*client, api);
  auto links = object(*client, "/apis/muster.dev/v1/links");
  if (!links) return fail(links.error());
  if (const std::string https = text_at(*links, {"api"}); !https.empty())
    return print_link(*client, std::string(kHttps) + reachable(https));
  const std::string http = api.starts_with("unix:") ? text_at(*links, {"http"}) : api;
  if (http.empty())
    return fail(kRejected,
                "the coordinator serves a Unix socket only, which browsers cannot reach: start it "
                "with --api or --api-tls");
  std::cout << "http://" << reachable(http) << "/" << std::endl;
  if (const size_t colon = http.rfind(':'); http.starts_with("127.") || http.starts_with("local"))
    std::cerr << "from another machine: ssh -L " << http.substr(colon + 1) << ":" << http
              << " THIS-MACHINE, then open the same address there" << std::endl;
  return kDone;
}

Verb web_verb() {
  auto o = std::make_shared<WebOptions>();
  return {.title = {"About", "web", "Print the address of the web page, or a link that logs in"},
          .asks = {&o->target},
          .footer =
              "Examples:\n  xdg-open $(muster web)\n  muster web --api https://head:7443\n"
              "On a coordinator with --api-tls, the link logs the browser in as yourself, once, "
              "within 5 minutes; the tab stays logged in for 12 hours, or until the token expires "
              "with which the link was made. The page only reads.",
          .finish = as_given(o)};
}

}  // namespace muster::cli
