// muster token, muster node: manage who may connect from other machines.
#include "base/text/time_text.hpp"
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/connect/token.hpp"
#include "client/settings/files.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"
#include "core/trust.hpp"
#include "trust/tls/certificates.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <pwd.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr char kGroup[] = "/apis/muster.dev/v1/";
constexpr Millis kSpareMs = 300'000;  // a cached credential is not handed out in its last minutes

std::string own_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

Json claims_body(const core::NodeClaims& claims) {
  return {{"labels", claims.labels},
          {"slotsMax", claims.slots_max},
          {"resources", claims.resources_max}};
}

Result<Json> made_token(const AccessOptions& options) {
  const auto client = connect(options.target);
  Json body = Json::object();
  if (options.life_ms) body["ttlSeconds"] = *options.life_ms / 1000;
  if (options.of_node) body.update(claims_body(options.claims));
  const std::string subject = options.subject.empty() ? own_name() : options.subject;
  auto answer = client->post(std::string(kGroup) + (options.of_node ? "nodes/" : "users/") +
                                 url_encoded(subject) + "/token",
                             dumped(body));
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  return std::move(answer->json);
}

int create(const AccessOptions& options) {
  auto token = made_token(options);
  if (!token) return fail(token.error());
  const std::string text = text_at(*token, {"text"});
  if (options.out.empty()) {
    std::cout << text << std::flush;
    return kDone;
  }
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(options.out, ignored).parent_path();
  std::filesystem::create_directories(folder, ignored);
  if (Status s = write_file(options.out, text); !s) return fail(s.error());
  const std::string of =
      options.of_node ? "node " + text_at(*token, {"node"}) : "user " + text_at(*token, {"user"});
  std::cout << options.out << ": token " << text_at(*token, {"id"}) << " of " << of << ", until "
            << text_at(*token, {"expirationTimestamp"}) << std::endl;
  return kDone;
}

int list(const AccessOptions& options) {
  const auto client = connect(options.target);
  auto found = object(*client, std::string(kGroup) + "tokens");
  if (!found) return fail(found.error());
  std::vector<std::vector<std::string>> rows = {{"ID", "OF", "EXPIRES", "MADE BY", "USED"}};
  for (const Json& token : at(*found, {"items"})) {
    const std::string node = text_at(token, {"node"});
    rows.push_back({text_at(token, {"id"}),
                    node.empty() ? "user/" + text_at(token, {"user"}) : "node/" + node,
                    text_at(token, {"expirationTimestamp"}), text_at(token, {"madeBy"}),
                    node.empty()                        ? "-"
                    : at(token, {"used"}) == Json(true) ? "yes"
                                                        : "no"});
  }
  std::cout << aligned(rows, "") << std::flush;
  return kDone;
}

int revoke(const AccessOptions& options) {
  const auto client = connect(options.target);
  const bool node = options.what == AccessOptions::What::revoke_node;
  auto answer =
      node
          ? client->post(
                std::string(kGroup) + "nodes/" + url_encoded(options.subject) + "/revocation", "{}")
          : client->remove(std::string(kGroup) + "tokens/" + url_encoded(options.subject), "{}");
  if (!answer) return fail(answer.error());
  if (!answer->ok()) return fail(refusal(*answer));
  // The answer names nothing, so only this one shows that a coordinator has revoked it.
  const auto known = client->get(node ? object_path(Kind::node, "", options.subject)
                                      : std::string(kGroup) + "tokens");
  if (!known && known.error().code == Errc::foreign) return fail(known.error());
  std::cout << (node ? "node/" : "token/") << options.subject << " revoked" << std::endl;
  if (node && known && known->status == 404)
    std::cerr << "muster: no node of that name has registered" << std::endl;
  return kDone;
}

int print_claims(const Json& claims) {
  const std::string name = "node/" + text_at(claims, {"node"});
  if (at(claims, {"asRegistered"}) == Json(true)) {
    std::cout << name
              << " may claim what it had at its last registration, or anything on the "
                 "coordinator's machine"
              << std::endl;
    return kDone;
  }
  std::string labels, resources;
  for (const Json& pattern : at(claims, {"labels"}))
    labels += (labels.empty() ? "" : ", ") + pattern.get<std::string>();
  for (const auto& [resource, most] : at(claims, {"resources"}).items())
    resources += (resources.empty() ? "" : ", ") + resource + "=" + most.dump();
  std::cout << name << " may claim:\n  labels     " << (labels.empty() ? "none" : labels)
            << "\n  slots      at most " << at(claims, {"slotsMax"}).dump() << "\n  resources  "
            << (resources.empty() ? "none" : resources) << std::endl;
  return kDone;
}

int claims(const AccessOptions& options) {
  const auto client = connect(options.target);
  const std::string path =
      std::string(kGroup) + "nodes/" + url_encoded(options.subject) + "/claims";
  const Json body = options.freeze ? Json{{"freeze", true}} : claims_body(options.claims);
  auto answer = options.what == AccessOptions::What::allow ? client->post(path, dumped(body))
                                                           : client->get(path);
  if (!answer) return fail(answer.error());
  if (!answer->ok()) return fail(refusal(*answer));
  return print_claims(answer->json);
}

// The file that caches credentials for this coordinator between calls by kubectl.
std::string cache_path(const Target& target) {
  return user_folder("XDG_CACHE_HOME", ".cache") + "/credential-" +
         tls::sha256_hex(target.api).substr(0, 16) + ".json";
}

// Whether the coordinator knows a token: it was not revoked, nor made by another coordinator at the
// same address.
bool still_there(const Target& target, const std::string& id) {
  const auto client = connect(target);
  auto found = object(*client, std::string(kGroup) + "tokens");
  if (!found) return false;
  const Json& tokens = at(*found, {"items"});
  return std::any_of(tokens.begin(), tokens.end(),
                     [&id](const Json& token) { return text_at(token, {"id"}) == id; });
}

int print_credential(const std::string& bearer, const std::string& until) {
  Json status = {{"token", bearer}};
  if (!until.empty()) status["expirationTimestamp"] = until;
  std::cout << dumped(Json{{"apiVersion", "client.authentication.k8s.io/v1"},
                           {"kind", "ExecCredential"},
                           {"status", status}})
            << std::endl;
  return kDone;
}

// With https: the token from the file, or one obtained through munge.
int remote_credential(const Target& target) {
  const auto client = connect(target);
  auto token = client->token();
  if (token.ok() && !token->until.empty()) {
    // kubectl asks only once, so this checks whether a cached token is still accepted. kubectl will
    // run into any other error itself.
    const auto ignored = client->get("/version");
    token = client->token();
  }
  if (!token) return fail(token.error());
  return print_credential(token->bearer, token->until);
}

// On the coordinator's machine: a cached token, or a new one.
int credential(const AccessOptions& options) {
  if (options.target.api.starts_with(kHttps)) return remote_credential(options.target);
  const std::string path = cache_path(options.target);
  if (auto text = read_file(path); text.ok()) {
    const Json cached = read_json(*text);
    const auto until = parse_time(text_at(cached, {"expirationTimestamp"}));
    auto token = parse_token(text_at(cached, {"text"}));
    if (token.ok() && until && *until > wall_now() + kSpareMs &&
        still_there(options.target, text_at(cached, {"id"})))
      return print_credential(token->bearer, text_at(cached, {"expirationTimestamp"}));
  }
  auto made = made_token(options);
  if (!made) return fail(made.error());
  auto token = parse_token(text_at(*made, {"text"}));
  if (!token) return fail(token.error());
  std::error_code ignored;
  const auto folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, ignored);
  // Without a cache, each call makes a token: slower, but no reason to fail.
  if (Status s = write_file(path, dumped(*made)); !s)
    std::cerr << "muster: " << s.error().message << std::endl;
  return print_credential(token->bearer, text_at(*made, {"expirationTimestamp"}));
}

}  // namespace

int execute(const AccessOptions& options) {
  switch (options.what) {
    case AccessOptions::What::create:
      return create(options);
    case AccessOptions::What::list:
      return list(options);
    case AccessOptions::What::credential:
      return credential(options);
    case AccessOptions::What::show_claims:
    case AccessOptions::What::allow:
      return claims(options);
    case AccessOptions::What::revoke:
    case AccessOptions::What::revoke_node:
      break;
  }
  return revoke(options);
}

}  // namespace muster::cli
