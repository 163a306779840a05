#include "api/view/model/changes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::api {

void Changes::push(Change change) {
  const size_t more = std::exchange(change.bytes, 0) + sizeof change;
  add_bytes(ring_.emplace_back(std::move(change)), more);
  trim();
}

void Changes::set_now(uint64_t version, const Key& key, PastPtr now, size_t bytes) {
  auto it = std::partition_point(ring_.begin(), ring_.end(),
                                 [&](const Change& c) { return c.version < version; });
  while (it != ring_.end() && it->version == version && it->key != key) ++it;
  if (it == ring_.end() || it->version != version) return;
  it->now = std::move(now);
  add_bytes(*it, bytes);
  trim();
}

void Changes::add_bytes(Change& change, size_t more) {
  const size_t most = std::numeric_limits<uint32_t>::max() - change.bytes;
  const auto added = static_cast<uint32_t>(std::min(more, most));
  change.bytes += added;
  bytes_ += added;
}

void Changes::trim() {
  while (ring_.size() > max_ || (bytes_ > bytes_max_ && ring_.size() > 1)) {
    floor_ = ring_.front().version;
    bytes_ -= ring_.front().bytes;
    ring_.pop_front();
    ++first_;
  }
}

std::optional<uint64_t> Changes::after(uint64_t version) const {
  if (version < floor_) return std::nullopt;
  // Several changes may share the last version of a commit.
  if (version == last_version(commit_of(version))) return std::nullopt;
  auto it = std::partition_point(ring_.begin(), ring_.end(),
                                 [&](const Change& c) { return c.version <= version; });
  return first_ + static_cast<uint64_t>(it - ring_.begin());
}

}  // namespace muster::api
