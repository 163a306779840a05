// muster kubeconfig: prints a kubeconfig for this coordinator.
//
// Over plain HTTP on loopback, the kernel identifies the caller. Over HTTPS, kubectl calls `muster
// token credential` to log in, with a token from a file or through munge.
#include "base/process/own_executable.hpp"
#include "cli/verbs/setup/addresses.hpp"
#include "cli/verbs/verb.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/connect/token.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "trust/tls/certificates.hpp"
#include "trust/tls/identity.hpp"

#include <filesystem>
#include <iostream>

namespace muster::cli {

struct KubeconfigOptions {
  Target target;
};

namespace {

struct Server {
  std::string url, authority;
  std::vector<std::string> credential;  // arguments for muster; empty: none
};

Result<Server> server_of(const Target& target) {
  if (target.api.starts_with(kHttps)) {
    const LogIn& log_in = target.log_in;
    const auto absolute = [](const std::string& path) {
      std::error_code ignored;
      return std::filesystem::absolute(path, ignored).string();
    };
    std::vector<std::string> credential = {"token", "credential", "--api", target.api};
    if (logs_in_by_munge(log_in)) {
      auto authority = read_authority(log_in.ca_file);
      if (!authority) return authority.error();
      credential.insert(credential.end(), {"--ca-file", absolute(log_in.ca_file)});
      if (!log_in.munge_socket.empty())
        credential.insert(credential.end(), {"--munge-socket", absolute(log_in.munge_socket)});
      return Server{target.api, *authority, std::move(credential)};
    }
    auto token = read_token(log_in);
    if (!token) return token.error();
    credential.insert(credential.end(), {"--token-file", absolute(log_in.token_file)});
    return Server{target.api, token->authority, std::move(credential)};
  }
  if (!target.api.starts_with("unix:")) return Server{"http://" + target.api, "", {}};
  const auto client = connect(target);
  auto links = object(*client, "/apis/muster.dev/v1/links");
  if (!links) return links.error();
  const std::string api = text_at(*links, {"api"});
  // Without HTTPS, the kernel identifies the caller.
  if (const std::string http = text_at(*links, {"http"}); api.empty() && !http.empty())
    return Server{"http://" + reachable(http), "", {}};
  if (api.empty())
    return invalid(
        "kubectl cannot connect to a Unix socket, and this coordinator serves no HTTPS: start it "
        "with --api-tls");
  return Server{std::string(kHttps) + reachable(api),
                text_at(*links, {"authority"}),
                {"token", "credential", "--api", target.api}};
}

}  // namespace

int execute(const KubeconfigOptions& options) {
  auto narrow = narrowed(options.target);  // a kubeconfig names one server
  if (!narrow) return fail(narrow.error());
  const Target& target = *narrow;
  auto server = server_of(target);
  if (!server) return fail(server.error());
  Json cluster = {{"server", server->url}};
  Json user = Json::object();
  if (!server->credential.empty()) {
    cluster["certificate-authority-data"] = tls::base64(server->authority);
    cluster["tls-server-name"] = tls::kServerName;
    const std::string self = own_executable();
    user["exec"] = {{"apiVersion", "client.authentication.k8s.io/v1"},
                    {"command", self.empty() ? "muster" : self},
                    {"args", server->credential},
                    {"interactiveMode", "Never"}};
  }
  const Json context = {
      {"name", "muster"},
      {"context", {{"cluster", "muster"}, {"namespace", target.ns}, {"user", "muster"}}}};
  std::cout << to_yaml({{"apiVersion", "v1"},
                        {"kind", "Config"},
                        {"clusters", Json::array({{{"name", "muster"}, {"cluster", cluster}}})},
                        {"contexts", Json::array({context})},
                        {"users", Json::array({{{"name", "muster"}, {"user", user}}})},
                        {"current-context", "muster"}})
            << std::flush;
  return kDone;
}

Verb kubeconfig_verb() {
  auto o = std::make_shared<KubeconfigOptions>();
  return {.title = {"About", "kubeconfig", "Print a kubeconfig for kubectl"},
          .asks = {&o->target},
          .footer =
              "Examples:\n  kubectl --kubeconfig <(muster kubeconfig) get jobs\n"
              "  muster kubeconfig --api mgmt1:7117 > ~/.kube/muster",
          .finish = as_given(o)};
}

}  // namespace muster::cli
