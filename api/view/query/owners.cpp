#include "api/view/query/owners.hpp"

#include "core/pod_name.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::api {
namespace {

// What a job of this name and uid is, without reading one from disk. One that cannot be read may be
// it.
Standing standing_of_job(const View& view, const std::string& ns, const core::OwnerRef& owner) {
  const JobStore& jobs = view.jobs();
  if (jobs.damaged() > 0) return Standing::solid;
  for (auto it = jobs.names().lower_bound({ns, owner.name, 0}); it != jobs.names().end(); ++it) {
    const auto& [its_ns, its_name, id] = *it;
    if (its_ns != ns || its_name != owner.name) break;
    if (const UnloadedJob* unloaded = jobs.unloaded(id)) {
      if (unloaded->uid == owner.uid) return Standing::solid;
    } else if (const JobView* job = jobs.in_memory(id)) {
      if (job->job.object().meta.uid != owner.uid) continue;
      if (job->job.hidden()) return Standing::gone;
      return in_foreground(job->job) ? Standing::waiting : Standing::solid;
    }
  }
  return Standing::gone;
}

Standing solid_if(bool there) {
  return there ? Standing::solid : Standing::gone;
}

}  // namespace

bool in_foreground(const core::Job& job) {
  const core::JobState& s = job.state();
  return s.deleted_at && !job.hidden() && !s.orphaned && !s.deletion_waits;
}

Owners::Owners(const View& view) : view_(view) {
  for (const uint64_t id : view.owned()) {
    const auto shown = view.kept_by_id(id);
    if (!shown) continue;
    const core::KeptPtr& kept = shown->kept->kept;
    const KeptFacts& facts = shown->kept->facts;
    add({.kept = kept,
         .ns = kept->ns,
         .name = kept->name,
         .uid = kept->uid,
         .owners = facts.owners,
         .leaving = facts.terminating,
         .waiting = facts.terminating});
  }
  for (const auto& [id, job] : view.jobs().owned()) {
    Dependent one{.job = id, .ns = job.ns, .name = job.name, .uid = job.uid, .owners = job.owners};
    if (!view.jobs().unloaded(id)) {
      const JobView* active = view.jobs().in_memory(id);
      if (!active || active->job.hidden()) continue;
      if (active->job.condition(core::ConditionType::damaged)) continue;  // no write is accepted
      const core::JobState& s = active->job.state();
      one.leaving = s.deleted_at.has_value();
      one.waiting = in_foreground(active->job);
      one.has_pods = !s.open.empty();
    }
    add(std::move(one));
  }
}

void Owners::add(Dependent one) {
  for (const core::OwnerRef& owner : one.owners) of_[owner.uid].push_back(dependents_.size());
  dependents_.push_back(std::move(one));
}

Standing Owners::standing(const core::OwnerRef& owner, const std::string& ns) const {
  switch (owner_kind(owner)) {
    case OwnerKind::foreign:
      return Standing::solid;
    case OwnerKind::job:
      return standing_of_job(view_, ns, owner);
    case OwnerKind::pod: {
      const auto pod = view_.pod(ns, owner.name);
      if (!pod) return solid_if(view_.jobs().damaged() > 0);
      return solid_if(core::pod_uid(pod->job->object().meta.uid, pod->pod->key) == owner.uid);
    }
    case OwnerKind::node: {
      const auto node = view_.node(owner.name);
      return solid_if(node && node->node->work_dir_id == owner.uid);
    }
    case OwnerKind::kept:
      break;
  }
  const auto kept = view_.kept(*kept_owner_kind(owner), ns, owner.name);
  if (!kept || !kept->kept || kept->kept->kept->uid != owner.uid) return Standing::gone;
  return kept->kept->facts.terminating ? Standing::waiting : Standing::solid;
}

Verdict Owners::judge(const Dependent& one) const {
  bool solid = false, waiting = false;
  Verdict verdict;
  for (const core::OwnerRef& owner : one.owners) {
    const Standing its = standing(owner, one.ns);
    solid = solid || its == Standing::solid;
    waiting = waiting || its == Standing::waiting;
    if (its != Standing::solid) verdict.lost.push_back(owner.uid);
  }
  using What = Verdict::What;
  if (verdict.lost.empty()) return verdict;
  if (solid)
    verdict.what = What::released;
  else if (one.leaving)
    verdict.lost.clear();
  else
    verdict.what = waiting && (one.has_pods || has_dependents(one.uid))
                       ? What::deleted_in_foreground
                       : What::deleted;
  return verdict;
}

// Follows the dependents that are waiting from one to the next.
bool Owners::depends_on(const std::string& uid, const Dependent& one) const {
  std::vector<std::string> look = {one.uid};
  std::set<std::string> seen;
  while (!look.empty()) {
    const std::string next = std::move(look.back());
    look.pop_back();
    if (next == uid) return true;
    const auto found = of_.find(next);
    if (found == of_.end() || !seen.insert(next).second) continue;
    for (const size_t i : found->second)
      if (dependents_[i].waiting) look.push_back(dependents_[i].uid);
  }
  return false;
}

bool Owners::blocked(const std::string& uid) const {
  const auto found = of_.find(uid);
  if (found == of_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](size_t i) {
    const Dependent& one = dependents_[i];
    const bool blocks = std::any_of(
        one.owners.begin(), one.owners.end(),
        [&uid](const core::OwnerRef& owner) { return owner.uid == uid && owner.blocks; });
    return blocks && !depends_on(uid, one);
  });
}

}  // namespace muster::api
