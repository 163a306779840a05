// Cluster: a coordinator and an agent of this build in a temporary directory, driven over HTTP as
// any client would.
//
// The directory is created under $TMPDIR (default /tmp). It should be on a real disk, which decides
// what durability costs.
#pragma once

#include "bench/process.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::bench {

struct JobRun {
  double seconds = 0;            // from the request to the terminal condition
  double coordinator_cpu_s = 0;  // used by the coordinator
  double agent_cpu_s = 0;        // used by the agent, without the keeper and the pods
  double keeper_cpu_s = 0;       // used by the keeper, its part of starting pods included
};

class Cluster {
 public:
  // Runs the executables in `bin_dir`. Returns once the node is ready.
  Cluster(const std::string& bin_dir, const std::vector<std::string>& agent_flags);
  ~Cluster();

  // Runs an Indexed job of `completions` times this program until it is Complete.
  JobRun run(uint32_t completions, uint32_t parallelism, const std::string& program = "/bin/true");
  // Stops the agent and deletes its node, so that a restart does not wait for it.
  void leave();
  // Restarts the coordinator; returns the seconds from its start until it is ready.
  double restart();
  // Returns the whole response, headers included.
  std::string get(const std::string& path);
  std::string request(const std::string& method, const std::string& path, const std::string& body);
  uint16_t api_port() const { return api_port_; }
  std::string version();  // resourceVersion of the last run's job
  double coordinator_mb() const { return coordinator_->resident_mb(); }

 private:
  std::string start_coordinator();
  pid_t keeper() const;  // 0: none

  const std::string bin_dir_;
  std::string listen_ = "127.0.0.1:0";
  std::string dir_;
  uint16_t api_port_ = 0;
  std::unique_ptr<Daemon> coordinator_;
  std::unique_ptr<Daemon> agent_;
  int jobs_ = 0;
};

}  // namespace muster::bench
