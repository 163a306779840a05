// Settings of the HTTP server.
#pragma once

#include "api/http/web_guard.hpp"
#include "base/clock.hpp"
#include "core/job/decision.hpp"

#include <kj/time.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace muster::api {

struct ServerOptions {
  bool insecure = false;             // serve other users and machines too
  HostRules hosts;                   // what we may be called
  std::string version = "0.0.0";     // of muster
  std::function<uint64_t()> random;  // for uids and generated names; must be good
  WallClock now = wall_now;
  core::Knobs knobs{};                   // for jobs that say nothing of them
  std::function<std::string()> metrics;  // text of /metrics; none: not served
  // Of a client: to send a request's head whole, and between two pieces of its body.
  kj::Duration head_patience = 15 * kj::SECONDS, body_patience = 30 * kj::SECONDS;
  // At a time. The next one takes the place of one that waits for a request; when there is none, it
  // is told that there are too many.
  size_t connections_max = 4096;
};

}  // namespace muster::api
