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
  return next == view_.changes().end() ? view_.version() : view_.changes().at(next).commit - 1;
}

size_t Watch::remembered() const {
  constexpr size_t kNode = sizeof(Key) + 32;  // of a set
  return initial_.size() * (sizeof(Key) + (tracking_ ? kNode : 0)) + matched_.size() * kNode;
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
    send(sink, "ADDED", *shown);
    if (tracking_) matched_.insert(key);
  }
  if (!initial_.empty()) return true;
  if (position_ < view_.changes().begin_of(query_.kind)) return false;
  std::set<Key> sent;
  for (; max > 0; --max, ++position_) {
    position_ = view_.changes().next_of(query_.kind, position_);
    if (position_ == view_.changes().end()) break;
    const Change& change = view_.changes().at(position_);
    const uint64_t next = view_.changes().next_of(query_.kind, position_ + 1);
    // Whether this is the last change of its commit that this watch can see.
    const bool last =
        next == view_.changes().end() || view_.changes().at(next).commit != change.commit;
    tell(change, last ? change.commit : change.commit - 1, sent, sink);
  }
  return true;
}

void Watch::send(const Sink& sink, std::string_view type, Shown shown) const {
  sink(type, query_.viewer.as_seen(shown));
}

void Watch::tell(const Change& change, uint64_t version, std::set<Key>& sent, const Sink& sink) {
  Key key = change.key;
  if (change.type == Change::Type::removed) return tell_removed(change, key, version, sink);
  auto shown = view_.find(key);
  if (!shown) {
    // Removals of a job's events are not announced.
    const bool notify_when_gone = change.key.kind != Kind::event || change.key.job == 0;
    if (change.type == Change::Type::added && notify_when_gone) owed_.insert(key);
    return;
  }
  key = key_of(*shown);  // a node may be another incarnation by now
  // A newer change to it lies ahead and will be sent instead. A passing change is sent anyway,
  // since it has no number of its own.
  if (change.type == Change::Type::touched && !change.passing && shown->version != change.commit)
    return;
  if (!sent.insert(key).second) return;  // already sent in this round, in its current state
  const bool matches = match(*shown);
  const bool had = tracking_ ? matched_.contains(key) : change.type == Change::Type::touched;
  if (!matches && !(tracking_ && had)) return;
  shown->own_version = shown->version;
  shown->version = version;
  if (!matches) {
    matched_.erase(key);
    send(sink, "DELETED", *shown);
    return;
  }
  if (tracking_) matched_.insert(key);
  send(sink, had ? "MODIFIED" : "ADDED", *shown);
}

void Watch::tell_removed(const Change& change, const Key& key, uint64_t version, const Sink& sink) {
  const Shown gone{.kind = change.key.kind,
                   .job = change.gone->job.get(),
                   .pod = change.gone->pod ? &*change.gone->pod : nullptr,
                   .node = change.gone->node.get(),
                   .kept = change.gone->kept.get(),
                   .version = version};
  const bool owed = owed_.erase(key) > 0;
  const bool matches = match(gone);
  const bool had = tracking_ ? matched_.erase(key) > 0 : matches && !owed;
  if (owed && matches) {
    Shown was = gone;
    // As of before the removal. `version` is that already if the commit has more changes.
    was.version = change.commit == 0 ? 0 : change.commit - 1;
    send(sink, "ADDED", was);
  }
  if (had || (owed && matches)) send(sink, "DELETED", gone);
}

}  // namespace muster::api
