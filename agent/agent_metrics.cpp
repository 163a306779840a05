// What the agent says of itself and its node, for Prometheus (docs/metrics.md).
#include "agent/agent_loop.hpp"
#include "agent/memory.hpp"
#include "base/process/exposition.hpp"
#include "base/process/self_usage.hpp"
#include "base/version.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace muster::agent {
namespace {

double in_seconds(Millis ms) {
  return static_cast<double>(ms) / 1000;
}

}  // namespace

std::string Agent::metrics() const {
  Exposition out;
  out.metric("muster_agent_build_info", "gauge", "The version of this agent.")
      .value(1, "version=\"" + std::string(kVersion) + "\"");
  const bool connected = link_.get() != nullptr && link_->session != nullptr;
  out.gauge("muster_agent_connected", "Whether the agent is registered with the coordinator.",
            connected ? 1 : 0);
  out.gauge("muster_agent_keeper_connected", "Whether the agent has its keeper.",
            executor_ready_ ? 1 : 0);
  out.gauge("muster_agent_slots", "Slots of the node.", options_.slots);
  std::set<PodId> living;  // with a process
  for (const auto& one : node_.living()) living.insert(one.pod);
  const size_t pods = node_.running().size() + node_.waiting().size();
  out.metric("muster_agent_pods", "gauge", "Pods of the node, by phase.")
      .value(static_cast<double>(living.size()), "phase=\"running\"")
      .value(static_cast<double>(pods - std::min(pods, living.size())), "phase=\"waiting\"");
  out.counter("muster_agent_process_starts_total", "Processes of pods that have started.",
              static_cast<double>(starts_));
  out.counter("muster_agent_process_ends_total", "Processes of pods that have ended.",
              static_cast<double>(ends_));
  out.metric("muster_agent_trouble", "gauge", "Why the node starts no pods; absent: it does.");
  if (trouble_) out.value(1, "reason=\"" + trouble_.reason + "\"");
  out.gauge("muster_agent_health_check_failing",
            "Whether the node fails its health check, or an epilog has failed.",
            health_failure().empty() ? 0 : 1);
  tell_disk(out, "muster_agent", work_dir_.path(), "the work-dir");
  if (const auto bytes = available_memory())
    out.gauge("muster_agent_memory_available_bytes", "Memory that is available on the node.",
              static_cast<double>(*bytes));
  if (const auto until_ms = credentials_.until_ms())
    out.gauge("muster_agent_certificate_expiry_timestamp_seconds",
              "When the node's certificate expires, in seconds since the epoch.",
              in_seconds(*until_ms));
  tell_own_usage(out, "the agent", started_ms_);
  return std::move(out).text();
}

}  // namespace muster::agent
