// HistoryFilter: which entries of the history are wanted.
#pragma once

#include "core/history/entry.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

// What is empty or absent excludes nothing.
struct HistoryFilter {
  std::optional<uint32_t> owner{};  // uid: what this user may see
  std::string ns{}, uid{};
  std::set<std::string> users{};  // names, or uids as numbers
  std::set<std::string> queues{};
  std::vector<std::string> names{};  // patterns of which one must match (matches_pattern)
  std::set<PastState> states{};
  std::set<Removal> removals{};  // or one of these, if there are any
  // Jobs that existed in this span and had not ended before it.
  std::optional<Millis> since{}, until{};  // `until` is not part of it

  bool accepts(const HistoryEntry& entry) const;
};

// As in a shell: `*` stands for any characters, `?` for one, everything else for itself.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace muster::core
