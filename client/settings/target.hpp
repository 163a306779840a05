// Target: the coordinator that a client talks to, and what it asks about.
#pragma once

#include "base/clock.hpp"
#include "client/settings/log_in.hpp"
#include "client/terminal/color.hpp"

#include <string>

namespace muster::cli {

// Common to all clients of a coordinator; made from their settings (discovery.hpp).
struct Target {
  // HOST:PORT, https://HOST:PORT or unix:PATH; or several of them, separated by commas
  std::string api = "127.0.0.1:7117";
  LogIn log_in;        // to a coordinator on another machine
  std::string origin;  // where it was configured: "from --api"
  bool named = false;  // by --api or MUSTER_API: `run` uses this coordinator
  std::string ns = "default";
  Millis request_timeout_ms = 30'000;
  Millis connect_timeout_ms = 5'000;  // how long to wait for a coordinator that is starting
  When color = When::automatic;
};

enum class Kind { job, pod, node, event, config_map, ns, cron_job, queue, priority_class };
enum class Output { table, wide, name, json, yaml, tsv };  // tsv: of attempts only

// What identifies an object that a verb has seen; empty: nothing known.
struct KnownObject {
  std::string uid, created{};
};

}  // namespace muster::cli
