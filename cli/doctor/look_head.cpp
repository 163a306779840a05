// Of a running coordinator, its own API says the most. Its address is in its data-dir, which only
// its user and root may read.
#include "base/fd.hpp"
#include "base/network/address_list.hpp"
#include "base/text/json.hpp"
#include "cli/doctor/look.hpp"
#include "client/connect/http.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"

#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace muster::cli::doctor {
namespace {

constexpr Millis kAnswerMs = 5'000;

// Why nothing can listen there; empty: something can.
std::pair<std::string, int> try_listening(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address_host(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host == "*" ? nullptr : host.c_str(),
                                   address.c_str() + colon + 1, &hints, &found);
      code != 0)
    return {gai_strerror(code), 0};
  int error = 0;
  for (const addrinfo* one = found; one != nullptr && error == 0; one = one->ai_next) {
    const Fd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    // As servers do: connections of an earlier one may linger.
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!fd || bind(fd.get(), one->ai_addr, one->ai_addrlen) != 0 || listen(fd.get(), 1) != 0)
      error = errno;
  }
  freeaddrinfo(found);
  return {error == EADDRINUSE      ? "a program listens there"
          : error == EADDRNOTAVAIL ? "it is not an address of this machine"
          : error != 0             ? std::strerror(error)
                                   : "",
          error};
}

// `running`: the addresses of the coordinator that runs, with the names of endpoints.json; null:
// none does.
std::vector<PortFacts> look_at_ports(const coordinator::Options& options, const std::string& peers,
                                     const Json& running) {
  std::vector<PortFacts> ports;
  for (const auto& [what, address, key] :
       {std::tuple("--api", &options.api, "api"), std::tuple("--listen", &options.listen, "listen"),
        std::tuple("--api-tls", &options.api_tls, "apiTls"),
        std::tuple("--listen-tls", &options.listen_tls, "listenTls"),
        std::tuple("--metrics-listen", &options.metrics, "metrics"),
        std::tuple("--peers", &peers, "peers")}) {
    PortFacts port{.what = what, .address = *address};
    if (const std::string held = text_at(running, {key}); !held.empty()) {
      port.address = held;
      port.held = true;
    } else if (address->empty() || address->starts_with("unix:") || !running.is_null()) {
      continue;  // of one that runs, endpoints.json names all that it serves by itself
    } else {
      const auto [error, code] = try_listening(*address);
      port.error = error;
      port.taken = code == EADDRINUSE;
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

std::optional<StoreFacts> look_at_store(ApiClient& client) {
  const auto list = object(client, "/apis/muster.dev/v1/coordinators");
  if (!list) return std::nullopt;
  StoreFacts facts;
  bool several = false;
  for (const Json& one : at(*list, {"items"})) {
    ++facts.coordinators;
    if (at(one, {"status", "inSync"}) == true) ++facts.in_sync;
    const Json& answers = at(one, {"status", "storeAnswers"});
    if (answers.is_null()) continue;
    several = true;
    facts.answers = answers == true;
  }
  return several ? std::optional(facts) : std::nullopt;
}

ServiceFacts look_at_service(const std::string& address) {
  ServiceFacts facts;
  ApiClient client(address);
  client.set_timeout(kAnswerMs);
  facts.reply = reply_of(client.get("/readyz"), address);
  if (!facts.reply.serves()) return facts;
  facts.store = look_at_store(client);
  const auto metrics = client.get("/metrics");
  facts.has_metrics = metrics && metrics->ok();
  if (!facts.has_metrics) return facts;
  const auto instant = [&metrics](std::string_view series) -> std::optional<Millis> {
    const auto seconds = metric(metrics->body, series);
    return seconds ? std::optional(static_cast<Millis>(*seconds * 1000)) : std::nullopt;
  };
  if (const auto at = instant("muster_last_backup_timestamp_seconds"))
    facts.backup_age_ms = wall_now() - *at;
  if (const auto at =
          instant("muster_certificate_expiry_timestamp_seconds{certificate=\"authority\"}"))
    facts.authority_left_ms = *at - wall_now();
  return facts;
}

// endpoints.json; discarded: it cannot be read.
Json endpoints_of(const std::string& data_dir) {
  return read_json(text_of_file(data_dir + "/endpoints.json"));
}

}  // namespace

Result<int> coordinator_of(const std::string& data_dir) {
  errno = 0;
  const Json running = endpoints_of(data_dir);
  if (!running.is_object()) {
    if (errno == 0 || errno == ENOENT || errno == ENOTDIR) return 0;
    return Error{Errc::unavailable, data_dir + "/endpoints.json: " + std::strerror(errno), {}};
  }
  const int pid = static_cast<int>(number_at(running, {"pid"}));
  // A coordinator that was killed has left its file behind.
  return pid > 0 && process_name(pid).starts_with("muster") ? pid : 0;
}

HeadFacts look_at_head(const coordinator::Options& options, const std::string& peers) {
  HeadFacts facts;
  facts.data_dir = look_at_place(options.data_dir, true);
  const auto found = coordinator_of(options.data_dir);
  if (!found) facts.not_seen = found.error().message;
  const int pid = found ? *found : 0;
  const bool runs = pid != 0;
  const Json running = runs ? endpoints_of(options.data_dir) : Json();
  facts.outdated = runs && is_outdated(pid);
  facts.ports = look_at_ports(options, peers, running);
  if (runs) facts.service = look_at_service(text_at(running, {"api"}));
  facts.limits =
      look_at_limits(runs ? pid : 0, runs ? "the coordinator (pid " + std::to_string(pid) + ")"
                                          : std::string("a program started from here"));
  if (!options.ca_certificate.empty())
    facts.authority = look_at_certificate(options.ca_certificate);
  if (options.munge) facts.munge = look_at_munge(options.munge_socket);
  return facts;
}

}  // namespace muster::cli::doctor
