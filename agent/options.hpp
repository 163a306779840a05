// What an agent is started with, and what tells a running one to go.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace muster::agent {

struct AgentOptions {
  std::string coordinator;                    // "HOST:PORT" or "unix:PATH"
  std::string name;                           // empty: the work-dir's, else the host's
  uint32_t slots = 0;                         // 0: the CPUs
  uint64_t cpu_millis = 0;                    // 0: 1000 a CPU
  uint64_t memory_bytes = 0;                  // 0: all of it
  std::map<std::string, uint32_t> resources;  // named ones (nvidia.com/gpu) and how many
  std::map<std::string, std::string> labels;
  std::string work_dir;     // may be empty only when hollow: then nothing is kept
  std::string keeper_path;  // empty: muster-keeper beside this executable
  Millis log_keep_ms = 7ll * 24 * 3600 * 1000;
  uint64_t log_max_bytes = 10ull << 30;
  uint64_t evict_below_bytes = 100ull << 20;  // of the node's memory available; 0: nobody goes
  bool hollow = false;
  Millis hollow_duration_ms = 0;
  int hollow_exit_code = 0;
};

// Tells a running agent from any thread what signals tell the daemon.
class AgentControl {
 public:
  enum class Command {
    none,
    drain,  // SIGTERM, SIGINT: pods are ended with their grace, their ends reported, then it leaves
    leave,  // SIGUSR2: it leaves at once, its pods stay
    kill,   // pods are ended at once and it leaves; nothing is reported
  };
  AgentControl();
  ~AgentControl();
  AgentControl(const AgentControl&) = delete;
  AgentControl& operator=(const AgentControl&) = delete;
  void order(Command command);  // the strongest one counts

  int fd() const { return fd_; }  // readable after an order
  Command take();

 private:
  int fd_;
};

}  // namespace muster::agent
