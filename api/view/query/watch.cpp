#include "api/view/query/watch.hpp"

#include <algorithm>
#include <utility>

namespace muster::api {

Watch::Watch(const View& view, Query query, uint64_t from, bool initial, uint64_t after)
    : view_(view),
      changes_(view.changes(query.kind)),
      query_(std::move(query)),
      position_(from),
      after_(after),
      may_turn_(query_.may_turn()),
      tracking_(may_turn_ && query_.kind == Kind::pod) {
  if (initial) {
    view_.each(query_.kind, query_.ns, query_.wanted(), [&](const Shown& shown) {
      if (match(shown)) initial_.push_back(key_of(shown));
    });
    std::reverse(initial_.begin(), initial_.end());
  } else if (tracking_) {
    remember_matching(from);
  }
}

// Pods that existed at `from` and have changed since may have matched then; pods added since have
// not been sent.
void Watch::remember_matching(uint64_t from) {
  view_.each(query_.kind, query_.ns, query_.wanted(), [&](const Shown& shown) {
    if (match(shown)) matched_.insert(key_of(shown));
  });
  std::set<Key> seen;
  // If some changes have been dropped meanwhile, the watch fails at its first pull.
  for (uint64_t at = std::max(from, changes_.begin()); at < changes_.end(); ++at) {
    const Change& change = changes_.at(at);
    if (!seen.insert(change.key).second) continue;
    if (change.type == Change::Type::added)
      matched_.erase(change.key);
    else if (may_have_matched(change))
      matched_.insert(change.key);
  }
}

// Pods have their template's labels, unless a pod of the job was relabeled.
bool Watch::may_have_matched(const Change& change) const {
  if (!query_.fields.empty()) return true;
  if (change.before) {
    const View::Was was = view_.was(change.key, change.before, change.version);
    return was.job->relabeled() || match(was.shown);
  }
  const auto shown = view_.find(change.key);
  return !shown || shown->job->relabeled() || match(*shown);
}

uint64_t Watch::version() const {
  const uint64_t passed = position_ >= changes_.end()
                              ? view_.version()
                              : changes_.at(std::max(position_, changes_.begin())).version - 1;
  return std::max(passed, after_);
}

size_t Watch::remembered() const {
  constexpr size_t kNode = sizeof(Key) + 32;  // of a set
  // An initial object that was sent may be remembered in ahead_ and matched_.
  return initial_.size() * (sizeof(Key) + (tracking_ ? 2 : 1) * kNode) +
         (matched_.size() + ahead_.size()) * kNode;
}

bool Watch::far_behind(size_t many) const {
  return !initial_.empty() || changes_.end() - position_ > many;
}

bool Watch::pull(const Sink& sink, size_t max) {
  for (; max > 0 && !initial_.empty(); --max) {
    const Key key = initial_.back();
    initial_.pop_back();
    begin(key, sink);
  }
  if (!initial_.empty()) return true;
  if (position_ < changes_.begin()) return false;
  for (; max > 0 && position_ < changes_.end(); --max, ++position_)
    tell(changes_.at(position_), sink);
  if (!behind()) ahead_.clear();
  return true;
}

// Sends an initial object. If it is gone or does not match any more, its changes up to now, which
// are ahead, are of no interest; but the existence of a pod is announced.
void Watch::begin(const Key& key, const Sink& sink) {
  const auto shown = view_.listed(key);
  const bool matches = shown && match(*shown);
  if (!shown && key.kind == Kind::pod) owed_.insert(key);
  if (position_ < changes_.end() && (matches || key.kind != Kind::pod))
    ahead_[key] = shown ? shown->version : view_.version();
  if (!matches) return;
  send(sink, "ADDED", *shown);
  if (tracking_) matched_.insert(key);
}

void Watch::send(const Sink& sink, std::string_view type, Shown shown) const {
  sink(type, query_.viewer.as_seen(shown));
}

void Watch::tell(const Change& change, const Sink& sink) {
  if (change.version <= after_) return;
  if (const auto first = ahead_.find(change.key);
      first != ahead_.end() && first->second >= change.version)
    return;
  if (change.whole()) return tell_whole(change, sink);
  if (change.type == Change::Type::removed) return tell_removed(change, sink);
  const auto shown = newest(change);
  if (!shown) return;
  const Key& key = change.key;
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

void Watch::tell_whole(const Change& change, const Sink& sink) {
  View::Was now, before;
  if (change.now) now = view_.was(change.key, change.now, change.version);
  const bool has = change.now && match(now.shown);
  bool had = change.before && has;
  if (change.before && (may_turn_ || !change.now)) {
    before = view_.was(change.key, change.before, change.version);
    had = match(before.shown);
  }
  if (has)
    send(sink, had ? "MODIFIED" : "ADDED", now.shown);
  else if (had)
    send(sink, "DELETED", before.shown);
}

// The state to send for this change of a pod, or this event of a job; nothing if a newer change of
// it lies ahead and will be sent instead.
std::optional<Shown> Watch::newest(const Change& change) {
  auto shown = view_.find(change.key);
  if (change.now) {
    Shown then = view_.was(change.key, change.now, change.version).shown;
    if (shown) then.job = shown->job;
    return then;
  }
  // Which change was its last is not known, so each is sent.
  if (shown && shown->stand_in) shown->version = change.version;
  if (shown && shown->version == change.version) return shown;
  // Removals of a job's events are not announced.
  if (change.type == Change::Type::added && (shown || change.key.kind == Kind::pod))
    owed_.insert(change.key);
  return std::nullopt;
}

void Watch::tell_removed(const Change& change, const Sink& sink) {
  const View::Was was = view_.was(change.key, change.before, change.version);
  const Shown& gone = was.shown;
  const bool owed = owed_.erase(change.key) > 0;
  const bool matches = match(gone);
  const bool had = tracking_ ? matched_.erase(change.key) > 0 : matches && !owed;
  if (owed && matches) {
    Shown first = gone;
    first.version = change.version - 1;
    send(sink, "ADDED", first);
  }
  if (had || (owed && matches)) send(sink, "DELETED", gone);
}

}  // namespace muster::api
