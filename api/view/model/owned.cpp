#include "api/view/model/owned.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::api {
namespace {

struct Names {
  std::string_view kind, api_version;
};

Names names_of(core::KeptKind kind) {
  switch (kind) {
    case core::KeptKind::lease:
      return {"Lease", "coordination.k8s.io/v1"};
    case core::KeptKind::event:
      return {"Event", "v1"};
    case core::KeptKind::config_map:
      return {"ConfigMap", "v1"};
    case core::KeptKind::cron_job:
      return {"CronJob", "batch/v1"};
    case core::KeptKind::queue:
      return {"Queue", "muster.dev/v1"};
    case core::KeptKind::priority_class:
      return {"PriorityClass", "scheduling.k8s.io/v1"};
    case core::KeptKind::name_space:
      break;  // its deletion removes what is in it
  }
  return {};
}

bool is(const core::OwnerRef& owner, const Names& names) {
  return owner.kind == names.kind && owner.api_version == names.api_version;
}

}  // namespace

std::optional<core::KeptKind> kept_owner_kind(const core::OwnerRef& owner) {
  for (const core::KeptKind kind : core::kKeptKinds)
    if (const Names names = names_of(kind); !names.kind.empty() && is(owner, names)) return kind;
  return std::nullopt;
}

OwnerKind owner_kind(const core::OwnerRef& owner) {
  if (is(owner, {"Job", "batch/v1"})) return OwnerKind::job;
  if (is(owner, {"Pod", "v1"})) return OwnerKind::pod;
  if (is(owner, {"Node", "v1"})) return OwnerKind::node;
  return kept_owner_kind(owner) ? OwnerKind::kept : OwnerKind::foreign;
}

bool has_own_owners(const std::vector<core::OwnerRef>& owners) {
  return std::any_of(owners.begin(), owners.end(), [](const core::OwnerRef& owner) {
    return owner_kind(owner) != OwnerKind::foreign;
  });
}

void OwnedJobs::set(JobId id, OwnedJob job) {
  erase(id);
  for (const core::OwnerRef& owner : job.owners) jobs_[owner.uid].insert(id);
  all_.emplace(id, std::move(job));
}

void OwnedJobs::erase(JobId id) {
  const auto had = all_.find(id);
  if (had == all_.end()) return;
  for (const core::OwnerRef& owner : had->second.owners) {
    const auto it = jobs_.find(owner.uid);
    if (it == jobs_.end()) continue;  // it was named twice
    it->second.erase(id);
    if (it->second.empty()) jobs_.erase(it);
  }
  all_.erase(had);
}

const std::set<JobId>& OwnedJobs::of(const std::string& uid) const {
  static const std::set<JobId> none;
  const auto it = jobs_.find(uid);
  return it == jobs_.end() ? none : it->second;
}

}  // namespace muster::api
