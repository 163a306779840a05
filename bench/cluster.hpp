// Cluster: a coordinator and an agent of this build on a temporary directory, driven over HTTP like
// any other client's.
//
// The directory lies under $TMPDIR (else /tmp), which decides what "durable" costs: it should be a
// real disk.
#pragma once

#include "bench/process.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::bench {

struct JobRun {
  double seconds = 0;            // from the request to the terminal condition
  double coordinator_cpu_s = 0;  // of the coordinator, meanwhile
  double agent_cpu_s = 0;        // of the agent alone: neither keeper nor pods
};

class Cluster {
 public:
  // Programs are taken from `bin_dir`. Waits until the node is ready.
  Cluster(const std::string& bin_dir, const std::vector<std::string>& agent_flags);
  ~Cluster();

  // Runs an Indexed job of `completions` /bin/true until it is Complete.
  JobRun run(uint32_t completions, uint32_t parallelism);
  // Ends the agent and deletes its node: no start waits for it.
  void leave();
  // Ends the coordinator and starts it again; seconds until it is ready.
  double restart();
  // The answer, headers included.
  std::string get(const std::string& path);
  std::string request(const std::string& method, const std::string& path, const std::string& body);
  uint16_t api_port() const { return api_port_; }
  std::string version();  // of the last run's job as it ended
  double coordinator_mb() const { return coordinator_->resident_mb(); }

 private:
  std::string start_coordinator();

  const std::string bin_dir_;
  std::string listen_ = "127.0.0.1:0";
  std::string dir_;
  uint16_t api_port_ = 0;
  std::unique_ptr<Daemon> coordinator_;
  std::unique_ptr<Daemon> agent_;
  int jobs_ = 0;
};

}  // namespace muster::bench
