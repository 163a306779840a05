// Watch: what one watcher has yet to receive.
//
// It walks the View's ring of changes at its own pace. Every change of a job, a node or a stored
// object is sent, in order, with the object as it was then. An object that starts or stops matching
// is sent as ADDED or DELETED; as in Kubernetes, DELETED has the object as it was before.
//
// Pods change too often for that (ADR 66): a pod is sent in the place of its newest change, and
// where a client has written to it, with the version that it has everywhere else. Every pod that
// existed is announced: if it is removed before its ADDED was sent, ADDED and DELETED are sent
// together.
//
// The versions of events only grow. A watcher that continues from the last version it has seen
// misses nothing and gets nothing twice. One that the ring has overtaken gets an error and ends.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/query/selector.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace muster::api {

class Watch {
 public:
  // Starts at position `from` of the ring. `initial`: the watcher has seen nothing, so all matching
  // objects come first, as ADDED.
  // Changes up to the version `after`, which may not exist yet, are skipped.
  Watch(const View& view, Query query, uint64_t from, bool initial, uint64_t after = 0);

  // `object` says whether only its summary may be shown.
  using Sink = std::function<void(std::string_view type, const Shown& object)>;
  // Passes at most about `max` changes to `sink`. False: the watcher was too slow, and changes that
  // it has not received were dropped from the ring.
  bool pull(const Sink& sink, size_t max);
  // Whether there is anything to pull.
  bool behind() const { return !initial_.empty() || position_ < changes_.end(); }
  // Whether more than `many` changes, or initial objects, are left to pull.
  bool far_behind(size_t many) const;
  // Bytes, about, of what it remembers of the objects that match now; the start is the most.
  size_t remembered() const;
  // The watcher has received all changes up to this version.
  uint64_t version() const;

 private:
  bool match(const Shown& shown) const { return query_.matches(view_, shown); }
  bool may_have_matched(const Change& change) const;
  void remember_matching(uint64_t from);
  void begin(const Key& key, const Sink& sink);
  void send(const Sink& sink, std::string_view type, Shown shown) const;
  void tell(const Change& change, const Sink& sink);
  void tell_whole(const Change& change, const Sink& sink);
  std::optional<Shown> newest(const Change& change);
  void tell_removed(const Change& change, const Sink& sink);

  const View& view_;
  const Changes& changes_;
  Query query_;
  uint64_t position_;
  const uint64_t after_;
  std::vector<Key> initial_;  // still to be sent; the next one is at the back
  bool may_turn_;             // objects may start or stop matching
  bool tracking_;             // so may pods, so `matched_` is kept
  std::set<Key> matched_;     // the pods that the watcher knows, as far as we can tell
  std::set<Key> owed_;        // pods that were added, but whose ADDED has not been sent
  // The versions of initial objects that are still ahead in the ring.
  std::map<Key, uint64_t> ahead_;
};

}  // namespace muster::api
