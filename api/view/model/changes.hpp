// Changes: the most recent changes of the objects of one kind since the start, in a ring that each
// watch walks at its own pace. It is bounded in number and in bytes. Positions count changes since
// the start and are never reused.
//
// Invariant: versions never decrease from one position to the next.
#pragma once

#include "api/view/model/shown.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace muster::api {

// What the changes of a kind may take in memory. The states of an object share what they have in
// common, and a change counts what the read model itself no longer has.
constexpr size_t changes_bytes_max(Kind kind) {
  switch (kind) {
    case Kind::pod:
      return 40u << 20;
    case Kind::job:
    case Kind::config_map:
    case Kind::cron_job:
      return 64u << 20;
    case Kind::node:
    case Kind::event:
    case Kind::lease:
    case Kind::name_space:
    case Kind::queue:
    case Kind::priority_class:
      break;
  }
  return 8u << 20;
}

class Changes {
 public:
  Changes(size_t max, size_t bytes_max) : max_(max), bytes_max_(bytes_max) {}

  // The ring never held changes up to this version.
  void start_at(uint64_t version) { floor_ = version; }
  // Drops the oldest changes when there are too many. The newest one always stays.
  void push(Change change);
  // Sets the state of an object after its change of this version, unless that was dropped.
  void set_now(uint64_t version, const Key& key, PastPtr now, size_t bytes);

  uint64_t begin() const { return first_; }
  uint64_t end() const { return first_ + ring_.size(); }
  const Change& at(uint64_t position) const { return ring_[position - first_]; }
  size_t bytes() const { return bytes_; }

  // The position of the first change after this version; nothing if some of them have been dropped.
  std::optional<uint64_t> after(uint64_t version) const;

 private:
  void add_bytes(Change& change, size_t more);
  void trim();

  size_t max_, bytes_max_;
  uint64_t floor_ = 0;  // changes up to this version may have been dropped
  std::deque<Change> ring_;
  uint64_t first_ = 0;  // position of the ring's front
  size_t bytes_ = 0;
};

}  // namespace muster::api
