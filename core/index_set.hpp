// IndexSet: a set of completion indexes, kept as sorted disjoint intervals.
//
// A job of 10^6 indexes finishes mostly in order, so its completed indexes form a handful of
// intervals; the API shows the set in the same form ("1,3-5,7"). Lookups and updates take time
// logarithmic in the number of intervals, plus the number of intervals they remove. size() is O(1).
//
// Invariant: at least one index is missing between two neighboring intervals.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::core {

constexpr int64_t kAnyIndex = int64_t{1} << 31;  // above every index

class IndexSet {
 public:
  using Intervals = std::map<uint32_t, uint32_t>;  // first -> last, both in the set

  // The controller's lenient parser (job-semantics 2.4): skips parts that are not numbers, stops at
  // a part that begins at or above `completions`, and clips a range that ends above it.
  static IndexSet parse_lenient(std::string_view text, int64_t completions);

  // The API's strict parser: indexes must increase and be below `completions`.
  static Result<IndexSet> parse_strict(std::string_view text, int64_t completions);

  // True if the index was not there before.
  bool insert(uint32_t index);
  // True if the index was there.
  bool erase(uint32_t index);
  void insert_range(uint32_t first, uint32_t last);
  void insert_all(const IndexSet& other);
  // The indexes that are in this set and not in the other.
  IndexSet without(const IndexSet& other) const;
  // Drops every index >= n.
  void erase_from(uint32_t n);
  void clear();

  bool contains(uint32_t index) const;
  bool empty() const { return size_ == 0; }
  uint64_t size() const { return size_; }
  // The first index >= from that is not in the set (2^32 if there is none).
  uint64_t lowest_missing(uint64_t from = 0) const;
  // The first index >= from that is in the set (2^32 if there is none).
  uint64_t lowest(uint64_t from = 0) const;

  const Intervals& intervals() const { return intervals_; }
  // "1,3-5,7": a run of two is "3,4", a run of three or more "first-last".
  std::string text() const;

  bool operator==(const IndexSet&) const = default;

 private:
  Intervals intervals_;
  uint64_t size_ = 0;
};

}  // namespace muster::core
