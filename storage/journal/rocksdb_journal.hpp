// RocksdbJournal: the journal on disk.
//
//   DIR             locked (flock) while a process has the journal open
//   DIR/lock        likewise; contains its pid
//   DIR/commit      the watermark (watermark.hpp)
//   DIR/cluster-id  the cluster whose state this is, so that a missing database is not
//                   mistaken for a new cluster
//   DIR/db/         RocksDB
//
// RocksDB recovers to a point in time: it drops a torn tail, as power loss leaves it, but also
// silently drops everything after a damaged byte. So open() first reads the database without
// changing it and compares its commit number with the watermark: a database that lacks acknowledged
// commits is refused, and its files stay untouched.
#pragma once

#include "base/fd.hpp"
#include "storage/journal/journal.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace rocksdb {
class DB;
}

namespace muster::storage {

class Watermark;

class RocksdbJournal final : public Journal {
 public:
  // Opens the journal in `data_dir`, creating it (0700) if needed. Errors name the directory and
  // say what to do: `conflict` if another process has it open; `invalid` if its format is unknown
  // or acknowledged data is missing; `unavailable` if the disk is full or fails.
  static Result<std::unique_ptr<Journal>> open(const std::string& data_dir);
  // Likewise, but an existing database stays unchanged until begin_writing() or the first commit,
  // so a caller that then finds that it must not serve the database leaves no trace in it. `lost`:
  // called within about a second, on another thread, if the files are deleted or replaced while the
  // journal is written; commits fail at once then.
  using Lost = std::function<void(const std::string& why)>;
  static Result<std::unique_ptr<Journal>> open_to_read(const std::string& data_dir,
                                                       Lost lost = nullptr);
  // Likewise, of a copy that has just been made: it has no watermark yet.
  static Result<std::unique_ptr<Journal>> open_copy(const std::string& data_dir,
                                                    Lost lost = nullptr);

  // What a data-dir or a backup holds now, also while a process has it open: takes no lock, changes
  // no file, and does not refuse a database that lacks acknowledged data. not_found: there is no
  // database; `invalid`: its format is unknown, or it cannot be read.
  struct Glance {
    std::unique_ptr<Rows> rows;
    uint64_t format = 0, commit = 0;
    std::optional<uint64_t> acknowledged;  // by the watermark, read before
    std::optional<uint64_t> pid;           // of the process that has it open
    uint64_t files = 0, bytes = 0;         // of the database
  };
  static Result<Glance> glance(const std::string& data_dir);
  // Copies all rows, as of one commit, to a new database DIR/db; also while a process has the
  // data-dir open. Every block is verified. Errors as of glance(), and `invalid`: acknowledged data
  // is missing; `unavailable`: the process has removed files meanwhile.
  static Status copy_rows(const std::string& data_dir, const std::string& dir);

  // The id in DIR/cluster-id; empty: there is none.
  static std::string noted_cluster(const std::string& data_dir);
  // Writes it, durably, unless it exists.
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
  struct Locks {  // on the directory and, for earlier versions, on the file
    Fd dir, file;
  };
  static Result<Locks> lock_dir(const std::string& dir);
  static Result<std::unique_ptr<Journal>> open_as(const std::string& data_dir, bool copy,
                                                  Lost lost);
  RocksdbJournal(std::string dir, Locks locks, Lost lost);
  std::shared_ptr<rocksdb::DB> db() const;
  Status files_there(const Watermark& watermark) const;

  const std::string dir_;
  const Locks locks_;
  const Lost lost_;
  mutable std::mutex db_mutex_;           // guards the replacement of db_
  std::shared_ptr<rocksdb::DB> db_;       // read-only until watermark_ is set
  bool formatted_ = false;                // the row "format" exists
  std::unique_ptr<Watermark> watermark_;  // null until begin_writing()
  std::shared_ptr<Damage> damage_;        // found by the writer's database
  std::atomic<bool> writes_ = false;      // watermark_ and db_ are final
  bool merges_ = true;
  std::atomic<uint64_t> last_commit_ = 0;  // read by any thread
  bool failed_ = false;                    // a commit failed: the state on disk is unknown
};

}  // namespace muster::storage
