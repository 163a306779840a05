// Hello: what an agent says of itself and its node when it registers, and the answer.
#pragma once

#include "core/cluster/nodes/epoch_line.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/trust.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::core::cluster {

// schema/agent.capnp, Hello.
struct Hello {
  uint64_t link = 0;  // the connection, as numbered by the RPC thread
  std::string node, work_dir_id, boot_id, cluster_id;
  std::string secret, cluster_key;  // prove its work-dir, and that it served this cluster
  uint64_t highest_epoch = 0, epoch_nonce = 0, highest_commit = 0;
  // Set for an agent of another machine: only history with our seal counts against our data-dir.
  bool must_prove = false;
  std::optional<KnownHistory> sealed{};  // the latest; its seal has been verified
  uint32_t slots = 0;
  uint64_t cpu_millis = 0, memory_bytes = 0;
  std::map<std::string, int64_t> resources;  // named resources
  StringMap labels;
  // An agent of another machine may claim no more; `as_registered`: no more than before.
  bool as_registered = false;
  std::optional<NodeClaims> claims{};
  std::string address;  // host name
  std::string ip{};
  LimitSupport limits{};
  std::string agent_version{}, keeper_version{};  // empty: not known
  std::optional<Millis> lives_ms{};               // until the node ends; absent: not known to
  std::vector<PodId> running, waiting, ended;
};

struct HelloAnswer {
  enum class Kind { welcome, name_taken, other_cluster };
  Kind kind = Kind::welcome;
  std::string message;     // why it is refused
  NodeId node = kNoNode;   // its incarnation
  std::vector<PodId> end;  // pods that the agent must end
};

}  // namespace muster::core::cluster
