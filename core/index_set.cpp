#include "core/index_set.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

namespace muster::core {
namespace {

constexpr uint64_t kNone = uint64_t{1} << 32;

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// Like Go's Atoi: an optional sign, digits and nothing else, within 64 bits.
std::optional<int64_t> to_integer(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error malformed(std::string reason) {
  return Error{Errc::invalid, std::move(reason), {}};
}

std::string in_quotes(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::string non_increasing(int64_t previous, int64_t current) {
  return "non-increasing order, previous: " + std::to_string(previous) +
         ", current: " + std::to_string(current);
}

}  // namespace

IndexSet IndexSet::parse_lenient(std::string_view text, int64_t completions) {
  IndexSet set;
  for (std::string_view part : split(text, ',')) {
    auto limits = split(part, '-');
    auto first = to_integer(limits[0]);
    auto last = limits.size() > 1 ? to_integer(limits[1]) : first;
    if (!first || !last || *first < 0) continue;
    if (*first >= completions) break;
    int64_t clipped = std::min(*last, completions - 1);
    if (clipped < *first || clipped > std::numeric_limits<uint32_t>::max()) continue;
    set.insert_range(static_cast<uint32_t>(*first), static_cast<uint32_t>(clipped));
  }
  return set;
}

Result<IndexSet> IndexSet::parse_strict(std::string_view text, int64_t completions) {
  IndexSet set;
  if (text.empty()) return set;
  std::optional<int64_t> previous;
  for (std::string_view part : split(text, ',')) {
    auto limits = split(part, '-');
    if (limits.size() > 2)
      return malformed("the fragment " + in_quotes(part) +
                       " violates the requirement that an index interval can have at most two "
                       "parts separated by '-'");
    std::optional<int64_t> first;
    for (std::string_view limit : limits) {
      auto number = to_integer(limit);
      if (!number || *number < 0)
        return malformed("cannot convert string to integer for index: " + in_quotes(limit));
      if (*number >= completions || *number >= static_cast<int64_t>(kNone))
        return malformed("too large index: " + in_quotes(limit));
      if (previous && *previous >= *number) return malformed(non_increasing(*previous, *number));
      previous = number;
      if (!first) first = number;
    }
    set.insert_range(static_cast<uint32_t>(*first), static_cast<uint32_t>(*previous));
  }
  return set;
}

bool IndexSet::insert(uint32_t index) {
  if (contains(index)) return false;
  insert_range(index, index);
  return true;
}

bool IndexSet::erase(uint32_t index) {
  auto after = intervals_.upper_bound(index);
  if (after == intervals_.begin()) return false;
  auto at = std::prev(after);
  auto [first, last] = *at;
  if (index > last) return false;
  if (first == index) {
    intervals_.erase(at);
  } else {
    at->second = index - 1;
  }
  if (index < last) intervals_.emplace(index + 1, last);
  --size_;
  return true;
}

void IndexSet::insert_range(uint32_t first, uint32_t last) {
  MUSTER_CHECK(first <= last, first, last);
  uint32_t from = first;
  uint32_t to = last;
  // Merge every interval that overlaps or touches the new one.
  auto it = intervals_.upper_bound(first);
  if (it != intervals_.begin()) {
    auto before = std::prev(it);
    if (uint64_t{before->second} + 1 >= first) it = before;
  }
  while (it != intervals_.end() && it->first <= uint64_t{last} + 1) {
    from = std::min(from, it->first);
    to = std::max(to, it->second);
    size_ -= uint64_t{it->second} - it->first + 1;
    it = intervals_.erase(it);
  }
  intervals_.emplace_hint(it, from, to);
  size_ += uint64_t{to} - from + 1;
}

void IndexSet::insert_all(const IndexSet& other) {
  for (auto [first, last] : other.intervals_) insert_range(first, last);
}

IndexSet IndexSet::without(const IndexSet& other) const {
  IndexSet rest;
  for (const auto& [first, last] : intervals_) {
    for (uint64_t index = other.lowest_missing(first); index <= last;
         index = other.lowest_missing(index)) {
      const uint64_t end = std::min<uint64_t>(other.lowest(index), uint64_t{last} + 1);
      rest.insert_range(static_cast<uint32_t>(index), static_cast<uint32_t>(end - 1));
      index = end;
    }
  }
  return rest;
}

void IndexSet::erase_from(uint32_t n) {
  while (!intervals_.empty()) {
    auto at = std::prev(intervals_.end());
    if (at->second < n) return;
    if (at->first < n) {
      size_ -= uint64_t{at->second} - n + 1;
      at->second = n - 1;
      return;
    }
    size_ -= uint64_t{at->second} - at->first + 1;
    intervals_.erase(at);
  }
}

void IndexSet::clear() {
  intervals_.clear();
  size_ = 0;
}

bool IndexSet::contains(uint32_t index) const {
  auto after = intervals_.upper_bound(index);
  return after != intervals_.begin() && index <= std::prev(after)->second;
}

uint64_t IndexSet::lowest_missing(uint64_t from) const {
  if (from >= kNone) return kNone;
  auto after = intervals_.upper_bound(static_cast<uint32_t>(from));
  if (after == intervals_.begin()) return from;
  uint64_t last = std::prev(after)->second;
  return from <= last ? last + 1 : from;
}

uint64_t IndexSet::lowest(uint64_t from) const {
  if (from >= kNone) return kNone;
  if (contains(static_cast<uint32_t>(from))) return from;
  auto after = intervals_.upper_bound(static_cast<uint32_t>(from));
  return after == intervals_.end() ? kNone : after->first;
}

std::string IndexSet::text() const {
  std::string out;
  for (auto [first, last] : intervals_) {
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last == first) continue;
    out += last - first == 1 ? ',' : '-';
    out += std::to_string(last);
  }
  return out;
}

}  // namespace muster::core
