#include "core/history/filter.hpp"

#include <algorithm>

namespace muster::core {
namespace {

bool belongs_to(const std::set<std::string>& users, const HistoryEntry& entry) {
  if (users.contains(entry.user)) return true;
  return entry.owner && users.contains(std::to_string(*entry.owner));
}

}  // namespace

bool HistoryFilter::accepts(const HistoryEntry& entry) const {
  if (owner && entry.owner != owner) return false;
  if (!ns.empty() && entry.ns != ns) return false;
  if (!uid.empty() && entry.uid != uid) return false;
  if (!users.empty() && !belongs_to(users, entry)) return false;
  if (!queues.empty() && !queues.contains(entry.queue)) return false;
  if (!names.empty() && std::ranges::none_of(names, [&entry](const std::string& pattern) {
        return matches_pattern(pattern, entry.name);
      }))
    return false;
  if (!(states.empty() && removals.empty()) && !states.contains(entry.state) &&
      !removals.contains(entry.removal))
    return false;
  if (since && entry.ended && *entry.ended < *since) return false;
  return !until || entry.created_ms < *until;
}

// Goes back to the last `*` when the rest does not match: quadratic at worst.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace muster::core
