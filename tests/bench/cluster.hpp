// Cluster: a coordinator and an agent of this build in a temporary directory, driven over HTTP as
// any client would.
//
// The directory is created under $TMPDIR (default /tmp). It should be on a real disk, which
// determines the cost of durability.
#pragma once

#include "tests/bench/http.hpp"
#include "tests/bench/process.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::bench {

constexpr uint32_t kParallelism = 1'000;  // a typical request; the slots are the limit
constexpr const char* kJobs = "/apis/batch/v1/namespaces/default/jobs";

struct BenchJob {  // Indexed; tolerates hollow nodes
  uint32_t completions = 1;
  uint32_t parallelism = 1;
  std::vector<std::string> command{"/bin/true"};
  std::string spec{};  // more fields of the spec as JSON, each after a comma
};
std::string manifest(const std::string& name, const BenchJob& job);

// An environment in which each sync takes muster `ms` longer.
std::vector<std::string> slow_sync(const std::string& bin_dir, uint32_t ms);

// From the request to the end of a job.
struct JobRun {
  double seconds = 0;
  double coordinator_cpu_s = 0;
  double agent_cpu_s = 0;   // without the keeper and the pods
  double keeper_cpu_s = 0;  // including its part in starting pods
  double disk_bytes = 0;    // written by all three
};

struct ClusterSetting {
  uint32_t nodes = 0;                      // > 0: this many hollow agents (muster-bench-nodes)
  std::vector<std::string> environment{};  // of the daemons: NAME=VALUE
  bool tls = false;                        // the agent joins by a token and speaks TLS
  std::vector<std::string> coordinator_flags{};
  // As on a node shared by many users: coordinator and agent run as nobody, the keeper as root, and
  // a job's pods as its owner, also nobody. Only for root, and without TLS.
  bool owners = false;
};

class Cluster {
 public:
  // Runs the executables in `bin_dir`. Returns once the nodes are ready.
  Cluster(const std::string& bin_dir, const std::vector<std::string>& agent_flags,
          ClusterSetting setting = {});
  ~Cluster();

  // Runs a job until it is Complete.
  JobRun run(const BenchJob& job);
  // The same in two steps: create() returns the job's path; finish() polls it until over(response).
  std::string create(const BenchJob& job);
  JobRun finish(const std::string& path, const std::function<bool(const std::string&)>& over);
  // Creates jobs of one index, PREFIX0 and so on, through this many clients, and waits until all
  // are Complete. The cluster must have no other jobs than those of earlier calls.
  void run_many(const std::string& prefix, uint32_t jobs, int client_count = 8);
  // Kills the coordinator (SIGKILL) and starts another; returns the seconds from the kill until the
  // new one is ready.
  double restart();
  // Returns the whole response, headers included.
  std::string get(const std::string& path);
  std::string request(const std::string& method, const std::string& path, const std::string& body);
  uint16_t api_port() const { return api_port_; }
  const std::string& api_tls() const { return api_tls_; }  // HOST:PORT; empty: none
  const std::string& dir() const { return dir_; }
  std::string version();  // resourceVersion of the last run's job
  double coordinator_mb() const { return coordinator_->resident_mb(); }
  double coordinator_cpu_s() const { return coordinator_->cpu_s(); }
  double agent_cpu_s() const { return agent_->cpu_s(); }

 private:
  struct Used {
    double coordinator_s = 0, agent_s = 0, keeper_s = 0, disk_bytes = 0;
  };
  Used used() const;
  std::string start_coordinator();
  void start_root_keeper();
  pid_t keeper() const;  // 0: none

  const std::string bin_dir_;
  const std::vector<std::string> environment_;
  const std::vector<std::string> coordinator_flags_;
  const bool owners_;
  std::string listen_ = "127.0.0.1:0";
  std::string dir_;
  uint16_t api_port_ = 0;
  std::string listen_tls_, api_tls_;
  std::unique_ptr<Daemon> coordinator_;
  std::unique_ptr<Daemon> keeper_;  // root's
  std::unique_ptr<Daemon> agent_;
  int jobs_ = 0;
  uint32_t many_ = 0;                   // jobs of run_many()
  Used before_;                         // when the last job was created
  std::unique_ptr<HttpClient> client_;  // that created it, and polls it
  double begin_ = 0;                    // likewise
};

}  // namespace muster::bench
