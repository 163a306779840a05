#include "storage/journal/memory_journal.hpp"

#include <algorithm>

namespace muster::storage {

void MemoryJournal::write(Rows& to, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.value) {
      to.insert_or_assign(row.key, *row.value);
    } else {
      to.erase(row.key);
    }
  }
}

Status MemoryJournal::commit(const std::vector<Row>& rows) {
  if (fails_from_ && last_commit_ + 1 >= *fails_from_) {
    return Error{Errc::unavailable, "no space left in memory journal: nothing was acknowledged"};
  }
  if (manual_) {
    if (unsynced_.empty()) synced_rows_ = rows_;
    unsynced_.push_back(rows);
  }
  write(rows_, rows);
  ++last_commit_;
  return Nothing{};
}

Result<std::optional<std::string>> MemoryJournal::get(std::string_view key) {
  if (damaged_.contains(key)) return Error{Errc::invalid, "memory journal: a damaged block", {}};
  auto it = rows_.find(key);
  if (it == rows_.end()) return std::optional<std::string>();
  return std::optional(it->second);
}

Status MemoryJournal::walk(std::string_view prefix, std::string_view from, const Walk& visit) {
  for (auto it = rows_.lower_bound(from); it != rows_.end() && it->first.starts_with(prefix);) {
    if (damaged_.contains(it->first))
      return Error{Errc::invalid, "memory journal: a damaged block", {}};
    auto next = visit(it->first, it->second);
    if (!next) break;
    it = *next > it->first ? rows_.lower_bound(*next) : std::next(it);
  }
  return Nothing{};
}

std::unique_ptr<Rows> MemoryJournal::frozen() {
  return std::make_unique<MemoryJournal>(*this);
}

void MemoryJournal::sync() {
  unsynced_.clear();
  synced_rows_.clear();
}

void MemoryJournal::crash(size_t kept) {
  fails_from_.reset();
  if (unsynced_.empty()) return;
  kept = std::min(kept, unsynced_.size());
  rows_ = std::move(synced_rows_);
  for (size_t i = 0; i < kept; ++i) write(rows_, unsynced_[i]);
  last_commit_ -= unsynced_.size() - kept;
  sync();
}

}  // namespace muster::storage
