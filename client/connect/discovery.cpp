#include "client/connect/discovery.hpp"

#include "base/network/address_list.hpp"
#include "base/peer/local_sockets.hpp"
#include "client/connect/objects.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <cstdlib>

namespace muster::cli {
std::string user_folder(const char* variable, const char* below_home) {
  if (const char* own = std::getenv(variable); own != nullptr && *own != '\0')
    return std::string(own) + "/muster";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/" + below_home + "/muster";
}

Result<std::string> normal_address(const std::string& text) {
  std::string address = text;
  if (address.starts_with("unix:/")) return address;
  const bool encrypted = address.starts_with(kHttps);
  if (encrypted) address.erase(0, kHttps.size());
  if (address.starts_with("http://")) address.erase(0, 7);
  while (!address.empty() && address.back() == '/') address.pop_back();
  const std::string local = "127.0.0.1:" + address;
  if (address.find(':') == address.npos && is_host_port(local) && !encrypted) return local;
  if (!is_host_port(address)) {
    return invalid("`" + text + "` is not an address: write HOST:PORT, such as " + kDefaultApi +
                   ", https://HOST:PORT or unix:PATH");
  }
  return (encrypted ? std::string(kHttps) : "") + address;
}

Result<std::string> normal_addresses(const std::string& text) {
  std::string all;
  const std::vector<std::string> entries = split_addresses(text);
  for (const std::string& entry : entries) {
    if (entry.empty() && entries.size() > 1)
      return invalid("`" + text + "`: an address is missing beside a comma");
    auto address = normal_address(entry);
    if (!address) return address.error();
    all += (all.empty() ? "" : ",") + *address;
  }
  return all;
}

Result<Target> target_of(const Settings& client) {
  Target target;
  const Setting& api = client["api"];
  auto address = normal_addresses(api.text());
  if (!address) return invalid(api.place() + ": " + address.error().message);
  target.api = *address;
  // By default, a coordinator on this machine is reached over its Unix socket.
  const auto socket =
      api.layer == Layer::built_in ? find_socket(socket_paths(kApiSocket)) : std::nullopt;
  if (socket) target.api = "unix:" + *socket;
  target.named = api.layer == Layer::flag || api.layer == Layer::variable;
  target.origin =
      socket ? "the local coordinator's socket; use --api or MUSTER_API for another coordinator"
      : api.layer == Layer::built_in
          ? "the default; use --api or MUSTER_API for another coordinator"
          : "from " + api.from;
  LogIn& log_in = target.log_in;
  log_in.coordinator_user = client.text("coordinator-user");
  log_in.token_file = client.text("token-file");
  log_in.token_named = !log_in.token_file.empty();
  if (!log_in.token_named) log_in.token_file = user_folder("XDG_CONFIG_HOME", ".config") + "/token";
  log_in.ca_file = client.text("ca-file");
  log_in.munge_socket = client.text("munge-socket");
  log_in.cache_folder = user_folder("XDG_CACHE_HOME", ".cache");
  target.ns = client.text("namespace");
  const Setting& timeout = client["request-timeout"];
  auto span = core::parse_duration(timeout.text());
  if (!span) return invalid(timeout.place() + ": " + span.error().message);
  if (*span < 1) return invalid(timeout.place() + ": must be more than 0s");
  target.request_timeout_ms = *span;
  const Setting& patience = client["connect-timeout"];
  auto wait = core::parse_duration(patience.text());
  if (!wait) return invalid(patience.place() + ": " + wait.error().message);
  // A shorter --request-timeout, as completion uses, means that the caller does not want to wait.
  const bool hurried = patience.layer == Layer::built_in && *span < *wait;
  target.connect_timeout_ms = hurried ? 0 : *wait;
  target.color = parse_when(client.text("color"));
  return target;
}

std::unique_ptr<ApiClient> connect(const Target& target) {
  auto client = std::make_unique<ApiClient>(target.api, target.origin, target.log_in);
  client->set_timeout(target.request_timeout_ms);
  client->set_patience(target.connect_timeout_ms);
  return client;
}

Result<Target> narrowed(const Target& target) {
  if (split_addresses(target.api).size() == 1) return target;
  const auto client = connect(target);
  if (auto answer = client->get("/apis/muster.dev/v1/links"); !answer) return answer.error();
  Target one = target;
  one.api = client->address();
  return one;
}

Status allow_long_answers(ApiClient& client, const Target& target) {
  auto version = object(client, "/version");
  if (!version) return version.error();
  client.set_timeout(3'600'000);
  client.set_patience(target.connect_timeout_ms);  // it may answer this before it serves the rest
  return Nothing{};
}

}  // namespace muster::cli
