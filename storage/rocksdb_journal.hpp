// RocksdbJournal: the journal on disk.
//
//   DIR/lock    held (flock) while a process has the journal open; holds its pid
//   DIR/commit  the watermark (watermark.hpp)
//   DIR/cluster-id  which cluster's state this is; so that a database that is gone is not taken for
//               one that never was
//   DIR/db/     RocksDB
//
// RocksDB recovers to a point in time: a torn tail, as power loss leaves it, is dropped; but so is
// everything after a damaged byte, without a word. So open() first reads the database without
// changing it and compares its commit number with the watermark: less than was acknowledged is
// refused, and the files stay as they were found.
#pragma once

#include "storage/journal.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace rocksdb {
class DB;
}

namespace muster::storage {

class Watermark;

class RocksdbJournal final : public Journal {
 public:
  // Opens the journal in `data_dir`, made (0700) if need be. Refusals name the directory and what
  // to do: `conflict` when another process has it open; `invalid` when its format is unknown or
  // acknowledged data is missing; `unavailable` when the disk is full or fails.
  static Result<std::unique_ptr<Journal>> open(const std::string& data_dir);
  // Likewise, but the database of a journal that is there stays as it is until begin_writing() or
  // the first commit: who finds out meanwhile that it must not be served leaves no trace in it.
  static Result<std::unique_ptr<Journal>> open_to_read(const std::string& data_dir);

  // The id in DIR/cluster-id; empty: there is none.
  static std::string noted_cluster(const std::string& data_dir);
  // Writes it, durably, unless it is there.
  static Status note_cluster(const std::string& data_dir, const std::string& cluster_id);

  ~RocksdbJournal() override;
  RocksdbJournal(const RocksdbJournal&) = delete;
  RocksdbJournal& operator=(const RocksdbJournal&) = delete;

  Status commit(const std::vector<Row>& rows) override;
  Status begin_writing() override;
  Status checkpoint(const std::string& dir) override;
  Status check() override;
  Status go_on_at(uint64_t commit) override;
  uint64_t last_commit() const override { return last_commit_; }
  Result<std::optional<std::string>> get(std::string_view key) override;
  Status walk(std::string_view prefix, std::string_view from, const Walk& visit) override;
  std::unique_ptr<Rows> frozen() override;

 private:
  class Damage;
  RocksdbJournal(std::string dir, int lock_fd);
  std::shared_ptr<rocksdb::DB> db() const;

  const std::string dir_;
  const int lock_fd_;
  mutable std::mutex db_mutex_;           // over which database db_ is
  std::shared_ptr<rocksdb::DB> db_;       // one for reading only while there is no watermark_
  bool formatted_ = false;                // the row "format" is there
  std::unique_ptr<Watermark> watermark_;  // of the writer; null: begin_writing() is to come
  std::shared_ptr<Damage> damage_;        // that the writer's database has met
  bool merges_ = true;
  std::atomic<uint64_t> last_commit_ = 0;  // read by any thread
  bool failed_ = false;                    // a commit failed: nobody knows what is on disk
};

}  // namespace muster::storage
