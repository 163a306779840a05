#include "api/view/model/changes.hpp"

#include <algorithm>
#include <utility>

namespace muster::api {

void Changes::push(Change change) {
  of_[static_cast<size_t>(change.key.kind)].push_back(end());
  ring_.push_back(std::move(change));
  while (ring_.size() > max_) {
    floor_ = ring_.front().version;
    const auto kind = static_cast<size_t>(ring_.front().key.kind);
    of_[kind].pop_front();
    begin_of_[kind] = first_ + 1;
    ring_.pop_front();
    ++first_;
  }
}

uint64_t Changes::next_of(Kind kind, uint64_t position) const {
  const auto& positions = of_[static_cast<size_t>(kind)];
  auto it = std::lower_bound(positions.begin(), positions.end(), position);
  return it == positions.end() ? end() : *it;
}

size_t Changes::count_of(Kind kind, uint64_t position) const {
  const auto& positions = of_[static_cast<size_t>(kind)];
  return static_cast<size_t>(positions.end() -
                             std::lower_bound(positions.begin(), positions.end(), position));
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
