#include "api/routes/page.hpp"

namespace muster::api {
namespace {

std::string policy() {
  return "default-src 'none'; style-src 'unsafe-inline'; script-src '" +
         std::string(kPageScriptHash) +
         "'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'";
}

}  // namespace

bool is_page(const Url& url) {
  return url.path.empty() || (url.path.size() == 1 && url.path[0] == "index.html");
}

bool wants_page(const Exchange& exchange) {
  const std::string& accept = exchange.accept;
  return accept.find("json") == std::string::npos || accept.find("text/html") != std::string::npos;
}

kj::Promise<void> send_page(Exchange& exchange) {
  const std::string etag = "\"" + std::string(kPageHash) + "\"";
  exchange.headers = {{"ETag", etag},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", policy()},
                      {"Referrer-Policy", "no-referrer"},
                      {"Vary", "Accept"}};
  const bool known = exchange.if_none_match.find(etag) != std::string::npos;
  return exchange.send(known ? 304 : 200, known ? std::string() : std::string(kPage),
                       "text/html; charset=utf-8");
}

}  // namespace muster::api
