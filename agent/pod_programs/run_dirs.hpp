// RunDirs: the run directory of each pod of an MPI job ($MUSTER_RUN_DIR).
//
//   work_dir/run/agent.sock          local_server.hpp
//   work_dir/run/NAME/token          the pod's token for muster-rsh
//                    /hostfile.openmpi, hostfile.hydra, hosts.running, peers.json
//                    /discover_hosts.sh, bin/
//
// NAME and token are derived from the work-dir's secret and the pod, so a restarted agent knows
// them. Files are replaced atomically. Where pods run as other users, those may read the files, but
// nobody can guess NAME; a token is useful only to its pod's own user (local_server.hpp).
#pragma once

#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/node/mpi.hpp"
#include "core/node/pod_template.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

// Where the pods of an MPI job are (wire::Hosts).
struct JobHosts {
  struct Host {
    uint32_t index = 0, attempt = 0;
    std::string node, ip;
    bool running = false;
  };
  uint32_t count = 0;  // of hosts that a launcher may use
  std::vector<Host> hosts;
};

class RunDirs {
 public:
  // `secret`: of the work-dir.
  RunDirs(std::string work_dir, std::string secret);
  void open_to_users() { public_ = true; }  // pods run as other users from now on

  std::string path(PodId pod) const;  // of its directory
  std::string name(PodId pod) const;
  std::string socket_dir() const { return run_; }

  // Makes the directory of a pod, for its owner.
  Status make(PodId pod, uint32_t uid, const core::node::PodTemplatePtr& job);
  // A pod that was running before the agent was restarted.
  void adopt(PodId pod, const core::node::PodTemplatePtr& job);
  void remove(PodId pod);
  // Removes the directories of pods that were not adopted.
  void sweep();

  void set_hosts(JobId job, JobHosts hosts);
  // The address at which other nodes reach this one. Launchers then use its interface.
  void set_ip(const std::string& ip);
  core::node::MpiFacts facts(PodId pod) const;

  // The nodes of a job's ranks, by rank; nullopt until every rank has one.
  std::optional<std::vector<std::string>> nodes_of(JobId job) const;

  struct Caller {
    PodId pod;
    uint32_t uid = 0;
  };
  // Whose token this is; nullopt if nobody's.
  std::optional<Caller> owner_of(const std::string& token) const;
  // Whether a pod on this node has a token for this user.
  bool has_pod_of(uint32_t uid) const;

 private:
  Status make_run() const;
  std::string keyed(const std::string& what) const;
  std::string token(PodId pod, uint32_t uid) const;
  Status write_hosts(PodId pod, const core::node::PodTemplate& job) const;

  const std::string work_dir_, run_, secret_, program_;
  bool public_ = false;
  std::string iface_, network_;
  std::map<PodId, core::node::PodTemplatePtr> made_;
  std::map<JobId, JobHosts> hosts_;
};

}  // namespace muster::agent
