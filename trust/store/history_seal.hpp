// HistorySeal: authenticates what the coordinator tells agents about its history.
//
// An agent keeps the epoch and the highest commit that it was told, and presents them when it
// registers. If our data-dir does not contain them, it is an outdated copy, and we stop. Over TLS
// the agent's word is not enough, or any node could stop us: the seal is an HMAC-SHA256 under a key
// that is in the data-dir, its copies and its backups, and nowhere else. So only a coordinator of
// this cluster can have made it. An old seal is harmless: it proves an old commit, which our
// history contains.
//
// The sealed text is "muster history 1 EPOCH NONCE COMMIT CLUSTER-ID".
#pragma once

#include "core/cluster/nodes/epoch_line.hpp"

#include <string>
#include <string_view>

namespace muster::coordinator {

class HistorySeal {
 public:
  // `key`: secret text of at least 256 bits. Empty: all seals are empty, and none is accepted.
  HistorySeal(std::string key, std::string cluster_id)
      : key_(std::move(key)), cluster_id_(std::move(cluster_id)) {}

  std::string of(const core::KnownHistory& history) const;  // 64 hexadecimal digits
  bool is_of(const core::KnownHistory& history, std::string_view seal) const;

 private:
  std::string key_, cluster_id_;
};

}  // namespace muster::coordinator
