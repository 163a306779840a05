// TemplateStore: the templates of pods of several processes, for a restarted agent.
//
//   WORK_DIR/templates/<job uid>.<generation>     a wire::PodTemplate, one Cap'n Proto message
//
// The coordinator sends templates only with launches, and a running pod is not launched again. So
// the template of a pod that may need another process (a restart, its next container) is written
// here before its first process starts; the note of each process names it.
//
// Invariant: the template of each such running pod is stored. A file that no pod needs is removed
// some time later. Nothing is synced: no pod survives a power loss.
#pragma once

#include "base/result.hpp"
#include "core/node/pod_template.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::agent {

class TemplateStore {
 public:
  // `extras`: as for read_template().
  TemplateStore(std::string dir, const core::node::NodeExtras& extras)
      : dir_(std::move(dir)), extras_(extras) {}

  // Stores it for at least as long as `job` is held.
  Status keep(const core::node::PodTemplatePtr& job);
  // Null: missing or unreadable. Read once, then shared.
  core::node::PodTemplatePtr load(const std::string& job_uid, int64_t generation);
  // Removes templates that are not held, including those left by an earlier agent.
  void sweep();

 private:
  using Holders = std::vector<std::weak_ptr<const core::node::PodTemplate>>;
  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  void drop_unheld();

  std::string dir_;
  core::node::NodeExtras extras_;
  std::map<std::string, Holders> kept_;
  size_t drop_at_ = 64;  // number of files above which keep() drops unheld ones
};

}  // namespace muster::agent
