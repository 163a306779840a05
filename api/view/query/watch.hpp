// Watch: what one watcher has yet to receive.
//
// It walks the View's ring at its own pace. An object is sent in the place of its newest change,
// with the version that it has everywhere else; so several changes to an object may be sent as one,
// and the versions of events only grow. Every object that existed is announced: if it is removed
// before its ADDED was sent, ADDED and DELETED are sent together. A watcher that the ring has
// overtaken gets an error and ends.
//
// A watcher that continues from the last version it has seen misses nothing and gets nothing twice.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/query/selector.hpp"

#include <functional>
#include <map>
#include <set>
#include <string_view>

namespace muster::api {

class Watch {
 public:
  // Starts at position `from` of the ring. `initial`: the watcher has seen nothing, so all matching
  // objects come first, as ADDED.
  Watch(const View& view, Query query, uint64_t from, bool initial);

  // `object` says whether only its summary may be shown.
  using Sink = std::function<void(std::string_view type, const Shown& object)>;
  // Passes at most about `max` changes to `sink`. False: the watcher was too slow, and changes that
  // it has not received were dropped from the ring.
  bool pull(const Sink& sink, size_t max);
  // Whether there is anything to pull.
  bool behind() const {
    return !initial_.empty() ||
           view_.changes().next_of(query_.kind, position_) < view_.changes().end();
  }
  // Whether more than `many` changes of its kind, or initial objects, are left to pull.
  bool far_behind(size_t many) const;
  // Bytes, about, of what it remembers of the objects that match now; the start is the most.
  size_t remembered() const;
  // The watcher has received all changes up to this version.
  uint64_t version() const;

 private:
  bool match(const Shown& shown) const { return query_.matches(view_, shown); }
  bool may_have_matched(const Change& change) const;
  void send(const Sink& sink, std::string_view type, Shown shown) const;
  void tell(const Change& change, const Sink& sink);
  void tell_removed(const Change& change, const Sink& sink);

  const View& view_;
  Query query_;
  uint64_t position_;
  std::vector<Key> initial_;  // still to be sent; the next one is at the back
  bool tracking_;             // objects may start or stop matching, so `matched_` is kept
  std::set<Key> matched_;     // the objects that the watcher knows, as far as we can tell
  std::set<Key> owed_;        // added, but their ADDED has not been sent
  // What was sent first, with a version that is still ahead in the ring.
  std::map<Key, uint64_t> ahead_;
};

}  // namespace muster::api
