#include "api/view/query/watch.hpp"

#include <algorithm>

namespace muster::api {
Watch::Watch(const View& view, Query query, uint64_t from, bool initial)
    : view_(view), query_(std::move(query)), position_(from), tracking_(query_.may_turn()) {
  if (!initial && !tracking_) return;
  view_.each(query_.kind, query_.ns, query_.wanted(), [&](const Shown& shown) {
    if (!match(shown)) return;
    if (initial) initial_.push_back(key_of(shown));
    if (tracking_ && !initial) matched_.insert(key_of(shown));
  });
  std::reverse(initial_.begin(), initial_.end());
  if (initial) return;
  // Objects that existed at `from` and have changed since may have matched then; objects added
  // since have not been sent.
  std::set<Key> seen;
  const Changes& changes = view_.changes();
  const auto next = [&](uint64_t at) { return changes.next_of(query_.kind, at); };
  // If some have been dropped meanwhile, the watch fails at its first pull.
  for (uint64_t at = next(std::max(from, changes.begin_of(query_.kind))); at < changes.end();
       at = next(at + 1)) {
    const Change& change = changes.at(at);
    if (!seen.insert(change.key).second) continue;
    if (change.type == Change::Type::added)
      matched_.erase(change.key);
    else if (may_have_matched(change))
      matched_.insert(change.key);
  }
}

// Pods have their template's labels, unless a pod of the job was relabeled.
bool Watch::may_have_matched(const Change& change) const {
  if (query_.kind != Kind::pod || !query_.fields.empty()) return true;
  if (change.gone) {
    const Shown gone{.kind = change.key.kind,
                     .job = change.gone->job.get(),
                     .pod = change.gone->pod ? &*change.gone->pod : nullptr};
    return !gone.job || !gone.pod || gone.job->relabeled() || match(gone);
  }
  const auto shown = view_.find(change.key);
  return !shown || !shown->job || shown->job->relabeled() || match(*shown);
}

uint64_t Watch::version() const {
  const uint64_t next = view_.changes().next_of(query_.kind, position_);
  return next == view_.changes().end() ? view_.version() : view_.changes().at(next).version - 1;
}

size_t Watch::remembered() const {
  constexpr size_t kNode = sizeof(Key) + 32;  // of a set
  // An initial object that was sent may be remembered in ahead_ and matched_.
  return initial_.size() * (sizeof(Key) + (tracking_ ? 2 : 1) * kNode) +
         (matched_.size() + ahead_.size()) * kNode;
}

bool Watch::far_behind(size_t many) const {
  return !initial_.empty() || view_.changes().count_of(query_.kind, position_) > many;
}

bool Watch::pull(const Sink& sink, size_t max) {
  for (; max > 0 && !initial_.empty(); --max) {
    const Key key = initial_.back();
    initial_.pop_back();
    auto shown = view_.listed(key);
    if (!shown) {
      owed_.insert(key);  // gone meanwhile; its removal is further ahead in the ring
      continue;
    }
    if (!match(*shown)) continue;
    if (view_.changes().next_of(query_.kind, position_) < view_.changes().end())
      ahead_[key] = shown->version;
    send(sink, "ADDED", *shown);
    if (tracking_) matched_.insert(key);
  }
  if (!initial_.empty()) return true;
  if (position_ < view_.changes().begin_of(query_.kind)) return false;
  for (; max > 0; --max, ++position_) {
    position_ = view_.changes().next_of(query_.kind, position_);
    if (position_ == view_.changes().end()) break;
    tell(view_.changes().at(position_), sink);
  }
  if (!behind()) ahead_.clear();
  return true;
}

void Watch::send(const Sink& sink, std::string_view type, Shown shown) const {
  sink(type, query_.viewer.as_seen(shown));
}

void Watch::tell(const Change& change, const Sink& sink) {
  if (change.type == Change::Type::removed) return tell_removed(change, sink);
  auto shown = view_.find(change.key);
  // Which change was its last is not known, so each is sent.
  if (shown && shown->stand_in) shown->version = change.version;
  // A newer change to it lies ahead and will be sent instead.
  if (!shown || shown->version != change.version) {
    // Removals of a job's events are not announced.
    const bool notify_when_gone = change.key.kind != Kind::event || change.key.job == 0;
    if (change.type == Change::Type::added && (shown || notify_when_gone))
      owed_.insert(shown ? key_of(*shown) : change.key);
    return;
  }
  const Key key = key_of(*shown);  // a node may be another incarnation by now
  if (const auto first = ahead_.find(key); first != ahead_.end() && first->second >= change.version)
    return;
  const bool added = owed_.erase(key) > 0 || change.type == Change::Type::added;
  const bool matches = match(*shown);
  const bool had = tracking_ ? matched_.contains(key) : !added;
  if (!matches && !(tracking_ && had)) return;
  if (!matches) {
    matched_.erase(key);
    return send(sink, "DELETED", *shown);
  }
  if (tracking_) matched_.insert(key);
  send(sink, had ? "MODIFIED" : "ADDED", *shown);
}

void Watch::tell_removed(const Change& change, const Sink& sink) {
  const Key& key = change.key;
  const Shown gone{.kind = key.kind,
                   .job = change.gone->job.get(),
                   .pod = change.gone->pod ? &*change.gone->pod : nullptr,
                   .node = change.gone->node.get(),
                   .kept = change.gone->kept.get(),
                   .version = change.version};
  const bool owed = owed_.erase(key) > 0;
  const bool matches = match(gone);
  const bool had = tracking_ ? matched_.erase(key) > 0 : matches && !owed;
  if (owed && matches) {
    Shown was = gone;
    was.version = change.version - 1;
    send(sink, "ADDED", was);
  }
  if (had || (owed && matches)) send(sink, "DELETED", gone);
}

}  // namespace muster::api
