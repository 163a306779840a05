// The node: whether its agent and keeper can start pods there, and what those can rely on.
#pragma once

#include "cli/doctor/client.hpp"
#include "cli/doctor/limits.hpp"
#include "cli/doctor/place.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli::doctor {

struct CgroupFacts {
  bool mounted = false;  // cgroup v2
  bool keeper = false;  // of the keeper that runs; else of a keeper that would be started from here
  std::string path{};   // below which pods get theirs
  std::string not_seen{};  // why the controllers are not known
  bool memory = false, cpu = false, cpuset = false;
  std::optional<uint64_t> pids_max{};  // the lowest from there up
};

struct KeeperFacts {
  int agent_pid = 0, keeper_pid = 0;  // 0: none runs on this work-dir
  bool of_root = false;               // root runs the keeper, for pods of several users
  // Its executable was replaced since it started.
  bool agent_outdated = false, keeper_outdated = false;
  std::string not_seen{};  // why that is not known; empty: it is
};

struct HomeFacts {
  size_t looked_at = 0;
  std::vector<std::string> missing{};  // "alice (/home/alice)"
};

// A coordinator's address for agents.
struct LinkFacts {
  std::string address;
  HostFacts host{};
  std::string error{};  // why it cannot be connected to; empty: it can
};

struct NodeFacts {
  std::string config_error{};  // why the agent's configuration cannot be used
  PlaceFacts work_dir{};
  uint64_t reserve_bytes = 0;  // --disk-reserve, as it applies to this disk
  PlaceFacts tmp{};
  LimitFacts limits{};
  uint32_t slots = 1;
  bool has_rdma = false;
  CgroupFacts cgroup{};
  KeeperFacts keeper{};
  std::optional<CertificateFacts> certificate{};  // unset: it has none
  std::vector<LinkFacts> links{};
  HostFacts own_name{};
  HomeFacts homes{};
  std::vector<std::string> launchers{};  // paths of mpirun and the like
};

void judge_node(const NodeFacts& facts, Findings& out);

// Of these findings, what breaks pods: for the log of an agent that starts.
std::vector<Finding> breaking_pods(const NodeFacts& facts);

}  // namespace muster::cli::doctor
