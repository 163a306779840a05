// Watch: what one watcher has still to be told.
//
// It walks the View's ring at its own pace and looks each change up as the object is now. So of
// several changes only the last is told (an earlier one is passed over), but that an object was
// there is told always: who comes too late for an ADDED gets it together with the DELETED. A
// watcher that the ring has overtaken is told so and ends.
//
// The versions in the events are such that a watcher which goes on from the last one it has seen
// misses nothing: of several changes in one commit all but the last carry the number before. Hence
// an object's version in a watch may be one below that of a GET.
#pragma once

#include "api/view/selector.hpp"
#include "api/view/view.hpp"

#include <functional>
#include <set>
#include <string_view>

namespace muster::api {

class Watch {
 public:
  // From the ring's position `from` on. `initial`: the watcher has seen nothing, all that matches
  // comes first as ADDED.
  Watch(const View& view, Query query, uint64_t from, bool initial);

  using Sink = std::function<void(std::string_view type, const Shown& object)>;
  // Tells at most about `max` changes to `sink`. False: too slow, the ring has gone over what was
  // not told yet.
  bool pull(const Sink& sink, size_t max);
  // Is there anything to pull?
  bool behind() const {
    return !initial_.empty() ||
           view_.changes().next_of(query_.kind, position_) < view_.changes().end();
  }
  // Are there more than so many changes of its kind to pull?
  bool far_behind(size_t many) const;
  // All changes up to this version have been told.
  uint64_t version() const;

 private:
  bool match(const Shown& shown) const { return query_.matches(view_, shown); }
  bool may_have_matched(const Change& change) const;
  void tell(const Change& change, uint64_t version, std::set<Key>& told, const Sink& sink);
  void tell_removed(const Change& change, const Key& key, uint64_t version, const Sink& sink);

  const View& view_;
  Query query_;
  uint64_t position_;
  std::vector<Key> initial_;  // still to be told, the next one at the end
  bool tracking_;             // objects may begin and cease to match: `matched_` is kept
  std::set<Key> matched_;     // what the watcher holds, as far as we know
  std::set<Key> owed_;        // was there, is gone, and its ADDED has not been told
};

}  // namespace muster::api
