// AgentOptions, AgentControl: how to start an agent, and how to stop a running one.
#pragma once

#include "agent/link/port_range.hpp"
#include "base/clock.hpp"
#include "base/process/service_manager.hpp"
#include "core/node/pod_template.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

struct AgentOptions {
  std::vector<std::string> coordinators;      // "HOST:PORT" or "unix:PATH"; at least one; those
                                              // after the first are tried in turn
  std::vector<std::string> sockets;           // paths that are tried before it
  std::string coordinator_user;               // who may serve us on this machine; empty: see
                                              // TrustedServers
  bool insecure = false;                      // connect to other machines without TLS
  std::string token_file;                     // join token; empty: none
  std::string name;                           // empty: the work-dir's, else the next
  std::string name_in_pool{};                 // empty: the host's
  uint32_t slots = 0;                         // 0: one per CPU
  uint64_t cpu_millis = 0;                    // 0: 1000 per CPU
  uint64_t memory_bytes = 0;                  // 0: all physical memory
  std::map<std::string, uint32_t> resources;  // named resources (nvidia.com/gpu), with counts
  core::node::DeviceMap device_numbers{};     // of those that do not count from 0
  bool finds_gpus = false;                    // declares those that there are
  std::map<std::string, std::string> labels;
  std::string node_ip;  // where other nodes reach this one; empty: as it reaches the coordinator
  // On which nodes of MPI jobs try each other; absent: they do not.
  std::optional<PortRange> peer_ports = PortRange{};
  std::string work_dir;     // may be empty if hollow: then nothing is stored
  std::string keeper_path;  // empty: muster-keeper next to this executable
  Millis log_keep_ms = 7ll * 24 * 3600 * 1000;
  uint64_t log_max_bytes = 10ull << 30;
  std::optional<uint64_t> evict_below_bytes =
      100ull << 20;                         // of the node's available memory; absent: no evictions
  uint64_t output_max_bytes = 10ull << 30;  // of a file of a pod's output; 0: no maximum. Likewise
  // Free space of the work-dir's file system below which no pods start, but at most a twentieth of
  // it.
  uint64_t disk_reserve_bytes = 0;
  std::string metrics{};       // serves /metrics for anyone: HOST:PORT; empty: none
  std::string health_check{};  // a command for sh -c; empty: none
  Millis health_check_every_ms = 300'000;
  std::optional<Millis> until_ms{};  // when the node ends, wall clock; absent: not known to
  std::string scratch_dir{};  // of pods; empty: in the work-dir. Used only if it starts the keeper
  bool private_tmp = false;   // each pod gets its own /tmp
  // Programs that run before and after each pod, with their time limits; empty: none.
  std::string prolog{}, epilog{};
  Millis prolog_timeout_ms = 60'000, epilog_timeout_ms = 60'000;
  bool binds_cpus = false;  // containers that request whole CPUs get them for themselves
  bool hollow = false;
  Millis hollow_duration_ms = 0;
  int hollow_exit_code = 0;
  std::function<void()> at_start{};   // called once the agent holds its work-dir; may be empty
  std::function<void()> at_hangup{};  // empty: SIGHUP ends the agent at once
  ServiceManager manager{};  // is told once the agent has its keeper, and while its loop runs
};

// What this node adds to the template of every job.
inline core::node::NodeExtras extras_of(const AgentOptions& options) {
  core::node::NodeExtras extras{.private_tmp = options.private_tmp};
  if (!options.prolog.empty()) extras.hooks.prolog_ms = options.prolog_timeout_ms;
  if (!options.epilog.empty()) extras.hooks.epilog_ms = options.epilog_timeout_ms;
  return extras;
}

// Commands a running agent from any thread, as signals do for the daemon.
class AgentControl {
 public:
  enum class Command {
    none,
    drain,  // SIGTERM, SIGINT: end the pods with their grace, report their ends, exit
    leave,  // SIGUSR2: exit at once, let the pods run
    kill,   // kill the pods and exit at once; report nothing
  };
  AgentControl();
  ~AgentControl();
  AgentControl(const AgentControl&) = delete;
  AgentControl& operator=(const AgentControl&) = delete;
  void order(Command command);  // of several pending ones, the strongest wins

  int fd() const { return fd_; }  // readable after an order
  Command take();

 private:
  int fd_;
};

}  // namespace muster::agent
