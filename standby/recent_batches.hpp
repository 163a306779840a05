// RecentBatches: the last batches of the journal, for followers that lack only these. While one
// copies the journal, all that follow the copy are kept, up to kKeptMax bytes: it would never catch
// up with a busy leader otherwise.
//
// A leader keeps those that it commits, a follower those that it receives: it may lead next.
// Belongs to one thread.
#pragma once

#include "storage/replica/replicated_journal.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace muster::standby {

class RecentBatches {
 public:
  static constexpr size_t kBytesMax = 32u << 20, kKeptMax = 512u << 20;

  // `commit` is the one after the last, or the first of a new sequence: then the others go.
  void add(uint64_t commit, storage::Replication::Batch batch) {
    if (!batches_.empty() && commit != first_ + batches_.size()) clear();
    if (batches_.empty()) first_ = commit;
    bytes_ += size_of(*batch);
    batches_.push_back(std::move(batch));
    while (bytes_ > (kept_ > 0 ? kKeptMax : kBytesMax) && batches_.size() > 1) {
      bytes_ -= size_of(*batches_.front());
      batches_.pop_front();
      ++first_;
    }
  }
  // Keeps what is added from now on until as many calls of release().
  void keep() { ++kept_; }
  void release() { --kept_; }
  void clear() {
    batches_.clear();
    bytes_ = 0;
  }
  // Whether all batches after this commit, up to `last`, are here.
  bool reaches(uint64_t after, uint64_t last) const {
    return after == last ||
           (!batches_.empty() && after + 1 >= first_ && first_ + batches_.size() == last + 1);
  }
  // Requires that it is here.
  const storage::Replication::Batch& at(uint64_t commit) const {
    return batches_[static_cast<size_t>(commit - first_)];
  }

 private:
  static size_t size_of(const std::vector<storage::Row>& rows) {
    size_t bytes = sizeof rows;
    for (const storage::Row& row : rows)
      bytes += sizeof row + row.key.size() + (row.value ? row.value->size() : 0);
    return bytes;
  }

  std::deque<storage::Replication::Batch> batches_;
  uint64_t first_ = 0;
  size_t bytes_ = 0;
  size_t kept_ = 0;
};

}  // namespace muster::standby
