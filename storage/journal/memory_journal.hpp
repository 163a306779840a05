// MemoryJournal: a journal for tests and simulations that can lose what was not synced.
//
// commit() writes and syncs, as the real one does. With set_manual_sync(true) it only writes: the
// rows are visible at once, but crash() drops them unless sync() was called first. A copy is a
// second disk with the same content, so that a test can crash one history at every point.
#pragma once

#include "storage/journal/journal.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::storage {

class MemoryJournal final : public Journal {
 public:
  Status commit(const std::vector<Row>& rows) override;
  Status go_on_at(uint64_t commit) override {
    last_commit_ = commit - 1;
    return Nothing{};
  }
  uint64_t last_commit() const override { return last_commit_; }
  Result<std::optional<std::string>> get(std::string_view key) override;
  Status walk(std::string_view prefix, std::string_view from, const Walk& visit) override;
  std::unique_ptr<Rows> frozen() override;

  void set_manual_sync(bool manual) { manual_ = manual; }
  void sync();
  // Simulates power loss: unsynced commits are lost, except for the first `kept` of them (a disk
  // may have written more than was synced). Ends the effect of fail_from().
  void crash(size_t kept = 0);
  // Commits with this number or a higher one fail as on a full disk, until the next crash().
  void fail_from(uint64_t commit) { fails_from_ = commit; }
  size_t unsynced() const { return unsynced_.size(); }
  // Reads of this row fail as on a damaged block.
  void damage(const std::string& key) { damaged_.insert(key); }

 private:
  using Rows = std::map<std::string, std::string, std::less<>>;
  static void write(Rows& to, const std::vector<Row>& rows);

  Rows rows_;         // what readers see
  Rows synced_rows_;  // what survives a crash; set only while there are unsynced commits
  std::vector<std::vector<Row>> unsynced_;  // rows_ = synced_rows_ + these
  uint64_t last_commit_ = 0;
  std::optional<uint64_t> fails_from_;
  bool manual_ = false;
  std::set<std::string, std::less<>> damaged_;
};

}  // namespace muster::storage
