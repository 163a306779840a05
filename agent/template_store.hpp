// TemplateStore: the templates of pods of several processes, for an agent that is restarted.
//
//   WORK_DIR/templates/<job uid>.<generation>     a wire::PodTemplate, one Cap'n Proto message
//
// The coordinator sends a template with a launch, and what runs is not launched again. So the one
// of a pod that may need another process (a restart, its next container) is written here before its
// first one is started; the note beside each process names it.
//
// Always holds: the template of a pod that runs is there. A file that no pod needs is removed some
// time later. Nothing is synced: a pod does not outlive the power of its machine.
#pragma once

#include "agent/pod_template.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::agent {

class TemplateStore {
 public:
  explicit TemplateStore(std::string dir) : dir_(std::move(dir)) {}

  // It stays for as long as anybody holds `job`.
  Status keep(const PodTemplatePtr& job);
  // Null: it is not there, or can't be read. Read once, then shared.
  PodTemplatePtr load(const std::string& job_uid, int64_t generation);
  // Removes what nobody holds, also what an earlier agent left.
  void sweep();

 private:
  using Holders = std::vector<std::weak_ptr<const PodTemplate>>;
  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  void drop_unheld();

  std::string dir_;
  std::map<std::string, Holders> kept_;
  size_t drop_at_ = 64;  // files
};

}  // namespace muster::agent
