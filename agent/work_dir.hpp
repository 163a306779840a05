// WorkDir: who this node is, kept in the agent's directory.
//
// An id is made with the directory and tied to its inode: a copied work-dir is another node, with
// another id, no name, and none of the other's processes (its keeper folder is moved away). A
// work-dir keeps one node name. It also keeps what the agent was told: the cluster and the highest
// term durably (before anything of that term is obeyed), the highest commit number without a sync,
// for a lost one says less and nothing wrong.
//
// Its secret proves to the coordinator that an agent is this work-dir's: who knows the id alone
// can't take the node over. It goes to the coordinator and nowhere else.
//
// One agent at a time: the lock goes with the process. The directory is 0700 and ours, its files
// are 0600, and no link that somebody put there is followed (base/private_files.hpp).
//
// identity: lines "KEY VALUE", KEY one of muster-node (the format, 1), id, secret, inode, name,
// cluster, cluster-key, epoch, nonce. commit: one decimal number, 20 digits.
#pragma once

#include "base/private_files.hpp"
#include "base/result.hpp"
#include "core/node/node.hpp"

#include <cstdint>
#include <string>

namespace muster::agent {

class WorkDir {
 public:
  // `name` empty: the name it has, or the host's. `conflict`: another agent holds it, or it has
  // another name.
  static Result<WorkDir> open(const std::string& path, const std::string& name);
  // Of an agent that keeps nothing (hollow ones): a fresh id and no files.
  static WorkDir ephemeral(const std::string& name);

  const std::string& path() const { return path_; }  // absolute; empty: ephemeral
  const std::string& id() const { return id_; }
  const std::string& node_name() const { return name_; }
  const std::string& secret() const { return secret_; }
  const std::string& cluster_id() const { return cluster_id_; }
  const std::string& cluster_key() const { return cluster_key_; }  // of that cluster
  core::node::Term term() const { return term_; }
  uint64_t commit() const { return commit_; }

  // Durable when it returns. `cluster_key` empty: as it was.
  Status told(const std::string& cluster_id, core::node::Term term,
              const std::string& cluster_key = "");
  void told_commit(uint64_t commit);
  // The keeper's spool is damaged: what is in it can't be spoken for any more, so this is another
  // node from now on.
  Status renew_id();

 private:
  Status load(const std::string& wanted_name);
  Status save() const;
  Status move_keeper_away(const char* why) const;

  std::string path_;
  Fd dir_, lock_, commit_file_;
  std::string id_, secret_, inode_, name_, cluster_id_, cluster_key_;
  core::node::Term term_;
  uint64_t commit_ = 0;
};

std::string boot_id();
std::string host_name();  // lower case, as a node name must be

}  // namespace muster::agent
