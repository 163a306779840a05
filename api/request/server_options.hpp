// Settings of the HTTP server.
#pragma once

#include "api/access/directory.hpp"
#include "api/access/quotas.hpp"
#include "api/access/rules.hpp"
#include "api/http/web_guard.hpp"
#include "base/clock.hpp"
#include "base/text/json.hpp"
#include "core/job/facts/decision.hpp"
#include "core/spec/fields/image_runtime.hpp"
#include "core/trust.hpp"

#include <kj/time.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace muster::api {

struct ServerOptions {
  bool insecure = false;  // serve other users and machines too
  RoleGroups roles{};     // if any: several users are served
  AccessRules access{};
  QuotaLimits quotas{};
  std::function<void(const OrderedJson& object)> audit;  // see access/audit.hpp; may be null
  Directory::Read read_account = muster::api::read_account;
  HostRules hosts;                      // the host names that we accept
  std::string version = "0.0.0";        // of muster
  std::string host_name = "localhost";  // of this machine, for mail
  std::function<uint64_t()> random;     // for uids and generated names; must be of good quality
  WallClock now = wall_now;
  bool munge = false;  // whether munge credentials are exchanged for tokens, over TLS
  Millis munge_token_life = core::kMungeTokenLife;  // of the token given for a munge credential
  kj::Duration munge_patience = 5 * kj::SECONDS;    // for an answer of munge's daemon
  core::Knobs knobs{};                              // for jobs that do not set them
  // Runs images; null: containers may have no command.
  std::optional<core::ImageRuntime> image_runtime{};
  std::function<std::string()> metrics;  // text of /metrics; if empty, not served
  // Called before anything is written to a client: does not return if what was read may be
  // outdated, because another coordinator leads. Empty: there is none.
  std::function<void()> before_writing;
  // Time limits for the whole head of a request, between two pieces of its body, and for the whole
  // body.
  kj::Duration head_patience = 15 * kj::SECONDS, body_patience = 30 * kj::SECONDS;
  kj::Duration body_time = 2 * kj::MINUTES;
  // Open watches. Where users have roles, each may have a quarter of them.
  size_t watches_max = 4096;
  // Bytes that all watches remember of the objects that they have to send at their start, or to
  // keep track of. Where users have roles, the watches of each may use a quarter of them.
  size_t watch_memory_max = 256u << 20;
  // Bytes of the bodies of unfinished requests, all together. Where users have roles, each may use
  // a quarter of them.
  size_t bodies_max = 64u << 20;
  // Simultaneous connections. At the limit, a new one replaces an idle one; if none is idle, it is
  // refused with a 503.
  size_t connections_max = 4096;
  // Likewise for other machines and metrics collectors, which therefore cannot crowd out local
  // clients.
  size_t remote_connections_max = 1024;
};

}  // namespace muster::api
