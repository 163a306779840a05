// WorkDir: a node's identity, stored in the agent's directory.
//
// The id is made with the directory and tied to its inode. A copied work-dir is another node, with
// a new id and without the original's name and processes (its keeper folder is moved away). A
// work-dir keeps its node name. It also stores what the agent has learned from the coordinator: the
// cluster and the highest term durably (before an order of that term is obeyed), the highest commit
// number without a sync, because an older number is still correct. The coordinator seals what it
// says, and the latest sealed statement is kept too: the only proof, over TLS, of what we know.
//
// The secret proves to the coordinator that an agent owns this work-dir: knowing the id is not
// enough to take over the node. It is sent only to the coordinator.
//
// One agent at a time; the lock ends with the process. The directory is 0700 and ours, its files
// are 0600, and planted links are not followed (base/files/private_files.hpp).
//
// identity: lines "KEY VALUE", KEY one of muster-node (the format, 1), id, secret, inode, name,
// cluster, cluster-key, epoch, nonce, sealed (EPOCH NONCE COMMIT SEAL, as of the term's beginning).
// commit: one decimal number, 20 digits; a second line like the value of `sealed`, each number of
// 20 digits. The later of the two counts.
#pragma once

#include "base/files/private_files.hpp"
#include "base/result.hpp"
#include "core/node/node.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::agent {

// What the coordinator sent us with its seal (64 hexadecimal digits; empty: nothing yet).
inline constexpr size_t kSealDigits = 64;
struct SealedHistory {
  core::node::Term term;
  uint64_t commit = 0;
  std::string seal;
};

std::string host_name();  // lower case, as a node name must be

class WorkDir {
 public:
  // `name` empty: the stored one, else `otherwise`. `conflict`: another agent holds the work-dir,
  // or it has another name.
  static Result<WorkDir> open(const std::string& path, const std::string& name,
                              const std::string& otherwise = host_name());
  // For an agent that stores nothing (a hollow one): a fresh id and no files.
  static WorkDir ephemeral(const std::string& name);

  const std::string& path() const { return path_; }  // absolute; empty: ephemeral
  // `unavailable`: the directory was deleted or replaced while it was in use.
  Status there() const;
  const std::string& id() const { return id_; }
  const std::string& node_name() const { return name_; }
  const std::string& secret() const { return secret_; }
  const std::string& cluster_id() const { return cluster_id_; }
  const std::string& cluster_key() const { return cluster_key_; }  // of that cluster
  core::node::Term term() const { return term_; }
  uint64_t commit() const { return commit_; }
  const SealedHistory& sealed() const { return sealed_; }

  // Durable when it returns. `cluster_key` empty: unchanged. `seal`: of this term and `commit`;
  // empty: none.
  Status learn(const std::string& cluster_id, core::node::Term term,
               const std::string& cluster_key = "", uint64_t commit = 0,
               const std::string& seal = "");
  // `seal`: of the current term and `commit`; empty: none.
  void learn_commit(uint64_t commit, const std::string& seal = "");
  // A private file in the directory. If ephemeral, nullopt and no effect.
  std::optional<std::string> read(const std::string& name) const;
  Status replace(const std::string& name, const std::string& text) const;
  void remove(const std::string& name) const;
  // For a damaged spool: its processes can no longer be accounted for, so this becomes a new node.
  Status renew_id();

 private:
  Status load(const std::string& wanted_name, const std::string& otherwise);
  Status save() const;
  Status move_keeper_away(const char* why) const;

  std::string path_;
  Fd dir_, lock_, commit_file_;
  std::string id_, secret_, inode_, name_, cluster_id_, cluster_key_;
  core::node::Term term_;
  uint64_t commit_ = 0;
  SealedHistory sealed_;
};

std::string boot_id();

}  // namespace muster::agent
