// Changes: the most recent changes since the start, in a bounded ring that each watch walks at its
// own pace. Positions count changes since the start and are never reused.
//
// Invariant: versions never decrease from one position to the next.
#pragma once

#include "api/view/model/shown.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace muster::api {

class Changes {
 public:
  explicit Changes(size_t max) : max_(max) {}

  // The ring never held changes up to this version.
  void start_at(uint64_t version) { floor_ = version; }
  // Drops the oldest changes when there are more than `max`.
  void push(Change change);

  uint64_t begin() const { return first_; }
  uint64_t end() const { return first_ + ring_.size(); }
  const Change& at(uint64_t position) const { return ring_[position - first_]; }

  // The position of the first change of this kind at or after `position`; end() if there is none.
  uint64_t next_of(Kind kind, uint64_t position) const;
  // The number of changes of this kind from `position` on.
  size_t count_of(Kind kind, uint64_t position) const;
  // Changes of this kind before this position may have been dropped; later ones are all here.
  uint64_t begin_of(Kind kind) const { return begin_of_[static_cast<size_t>(kind)]; }
  // The position of the first change after this version; nothing if some of them have been dropped.
  std::optional<uint64_t> after(uint64_t version) const;

 private:
  size_t max_;
  uint64_t floor_ = 0;  // changes up to this version may have been dropped
  std::deque<Change> ring_;
  uint64_t first_ = 0;                           // position of the ring's front
  std::array<std::deque<uint64_t>, kKinds> of_;  // positions of the changes of each kind
  std::array<uint64_t, kKinds> begin_of_{};
};

}  // namespace muster::api
