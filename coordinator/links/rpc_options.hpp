// RpcOptions: the settings of the agents' port.
#pragma once

#include "api/view/query/pod_configs.hpp"
#include "base/clock.hpp"
#include "core/cluster/nodes/reach.hpp"
#include "core/spec/fields/image_runtime.hpp"
#include "trust/permit/permit.hpp"
#include "trust/store/history_seal.hpp"
#include "trust/store/trust_store.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::coordinator {

struct RpcOptions {
  std::string listen;  // HOST:PORT or unix:PATH
  bool insecure = false;
  // Where users have roles: signs permits; only agents that heed a job's owner are accepted.
  std::optional<PermitKey> permit_key{};
  std::string cluster_id;
  std::string cluster_key;
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  Millis node_grace_ms = 40'000;
  std::function<uint64_t()> last_commit;
  // Agents of other machines, over TLS; empty: none.
  std::string listen_tls{};
  TrustStore* trust = nullptr;           // not null if there are any; outlives the server
  Millis register_patience_ms = 30'000;  // time limit for a connection to register
  std::string socket{};                  // path of an additional Unix socket; empty: none
  bool socket_required = true;
  std::vector<uid_t> agent_users{};  // trusted besides our own user and root
  HistorySeal seal{"", ""};
  // Agents of other machines must use our seal to prove our data-dir outdated (actors::AgentHello).
  bool seals_prove = true;
  core::ImageRuntime image_runtime{};
  // ApiThread::pod_configs().
  std::function<void(PodId pod, NodeId node, std::function<void(Result<api::PodConfigs>)> done)>
      pod_configs{};
  // Called on the RPC thread with each change of which nodes of a job do not reach each other.
  // None: they do again; nullopt: that is not known any more.
  std::function<void(JobId job, std::optional<std::vector<core::Unreached>> pairs)>
      show_unreached{};
};

}  // namespace muster::coordinator
