#include "storage/journal/rocksdb_journal.hpp"

#include "base/check.hpp"
#include "base/files/private_files.hpp"
#include "base/files/whole_write.hpp"
#include "base/log.hpp"
#include "schema/journal.capnp.h"
#include "storage/journal/keys.hpp"
#include "storage/journal/text_number.hpp"
#include "storage/journal/watermark.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::storage {

// RocksDB stops all writes when a compaction hits a damaged block. muster fails only the reads that
// need the block: this listener clears the error, so the tables stay as they are and writes
// continue.
class RocksdbJournal::Damage final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override {
    if (reason != rocksdb::BackgroundErrorReason::kCompaction || !status->IsCorruption()) return;
    if (!met_.exchange(true))
      log::error("a block of the database is damaged; compaction is suspended: {}",
                 status->ToString());
    *status = rocksdb::Status::OK();
  }
  bool met() const { return met_; }

 private:
  std::atomic<bool> met_ = false;
};

namespace {

constexpr size_t kCacheBytes = 8 << 20;
constexpr size_t kMemtableBytes = 8 << 20;
constexpr size_t kMemtablesBytes = 32 << 20;
constexpr uint64_t kLogBytes = 64 << 20;
constexpr int kOpenFiles = 256;
constexpr uint64_t kRoomBytes = 1 << 20;  // free space to open, beyond the logs it replays
constexpr size_t kInfoLogBytes = 1 << 20;
constexpr size_t kInfoLogs = 4;

rocksdb::Options options() {
  rocksdb::Options o;
  o.create_if_missing = true;
  o.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  o.write_buffer_size = kMemtableBytes;
  o.db_write_buffer_size = kMemtablesBytes;
  o.max_total_wal_size = kLogBytes;
  o.max_open_files = kOpenFiles;
  o.max_file_opening_threads = 1;  // 16 by default, started at each open even if there are no files
  o.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  o.max_log_file_size = kInfoLogBytes;
  o.keep_log_file_num = kInfoLogs;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kCacheBytes);
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

rocksdb::Slice slice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}
std::string_view view(const rocksdb::Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

Error no_space(const std::string& dir) {
  return {Errc::unavailable, "no space left in " + dir + ": nothing was acknowledged"};
}

Error system_error(const std::string& dir, const std::string& doing) {
  if (errno == ENOSPC || errno == EDQUOT) return no_space(dir);
  return {Errc::unavailable, dir + ": can't " + doing + ": " + strerror(errno)};
}

Error database_error(const std::string& dir, const rocksdb::Status& status) {
  if (status.IsNoSpace()) return no_space(dir);
  if (status.IsCorruption()) {
    return {Errc::invalid, dir + ": the journal is damaged: " + status.ToString() +
                               ". Use `muster restore` to go back to an earlier copy"};
  }
  return {Errc::unavailable, dir + ": the journal can't be read or written: " + status.ToString()};
}

Status make_dirs(const std::string& dir) {
  for (const std::string& path : {dir, dir + "/db"})
    if (auto opened = open_private_dir(path, "data-dir"); !opened) return opened.error();
  return Nothing{};
}

// Checks that there is room to open the database. Opening writes a manifest and rewrites what the
// logs hold; on a full disk, RocksDB as Debian builds it (7.8.3, with assertions) aborts without
// saying what is wrong.
Status check_room(const std::string& dir) {
  uint64_t bytes = kRoomBytes;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(dir + "/db", failed)) {
    if (entry.path().extension() != ".log") continue;
    uint64_t size = entry.file_size(failed);
    if (!failed) bytes += size;
  }
  std::string path = dir + "/room";
  unlink(path.c_str());
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return system_error(dir, "make " + path);
  int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  close(fd);
  unlink(path.c_str());
  if (error == 0) return Nothing{};
  errno = error;
  return system_error(dir, "reserve " + std::to_string(bytes) + " bytes");
}

// Makes the entries of a directory durable: if the directory itself vanished in a power loss, so
// would the acknowledged data in it.
Status sync_dir(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error(path, "open it");
  Status status = Nothing{};
  if (fsync(fd) != 0) status = system_error(path, "sync it");
  close(fd);
  return status;
}

std::string holder(int lock_fd) {
  char text[32];
  ssize_t n = pread(lock_fd, text, sizeof text, 0);
  auto pid = n > 0 ? parse_number(std::string_view(text, static_cast<size_t>(n))) : std::nullopt;
  return pid ? " (pid " + std::to_string(*pid) + ")" : "";
}

struct Found {
  std::optional<std::string> format;  // nullopt: not a journal, or never fully created
  uint64_t commit = 0;
  bool empty = true;  // meaningful only without a format
};

// Reads what the database holds; changes nothing.
Result<Found> look(const std::string& dir, rocksdb::DB& db) {
  Found found;
  std::string value;
  auto status = db.Get({}, slice(keys::kFormat), &value);
  if (status.ok()) {
    found.format = value;
  } else if (!status.IsNotFound()) {
    return database_error(dir, status);
  }
  status = db.Get({}, slice(keys::kCommit), &value);
  if (status.ok()) {
    auto commit = parse_number(value);
    if (!commit)
      return Error{Errc::invalid, dir + ": the commit number of the journal is \"" + value + "\""};
    found.commit = *commit;
  } else if (!status.IsNotFound()) {
    return database_error(dir, status);
  }
  if (found.format) return found;
  std::unique_ptr<rocksdb::Iterator> it(db.NewIterator({}));
  it->SeekToFirst();
  found.empty = !it->Valid();
  if (!it->status().ok()) return database_error(dir, it->status());
  return found;
}

Status judge(const std::string& dir, const Found& found, std::optional<uint64_t> acknowledged) {
  if (found.format) {
    auto format = parse_number(*found.format);
    if (!format || *format > wire::JOURNAL_FORMAT) {
      return Error{Errc::invalid, dir + ": written by a newer muster: format " + *found.format +
                                      ", this version supports " +
                                      std::to_string(wire::JOURNAL_FORMAT)};
    }
    if (*format < wire::JOURNAL_FORMAT) {
      return Error{Errc::invalid, dir + ": written by an older muster: format " + *found.format +
                                      ", this version supports " +
                                      std::to_string(wire::JOURNAL_FORMAT)};
    }
  } else if (!found.empty) {
    return Error{Errc::invalid, dir + "/db is not a muster journal"};
  }
  if (acknowledged.value_or(0) > found.commit) {
    return Error{Errc::invalid,
                 dir + ": ACKNOWLEDGED DATA IS MISSING: commit " + std::to_string(*acknowledged) +
                     " was acknowledged, only " + std::to_string(found.commit) +
                     " could be recovered. The database was damaged, truncated or replaced by an "
                     "older one. Nothing was changed, and the coordinator does not start, because "
                     "what was acknowledged after commit " +
                     std::to_string(found.commit) +
                     " would be lost silently. If there is no better copy of the directory, use "
                     "`muster restore` to continue from what is left"};
  }
  return Nothing{};
}

std::string cluster_file(const std::string& dir) {
  return dir + "/cluster-id";
}

// Opens an existing database without changing it: opening it for writing would already drop what
// follows a damaged byte. nullptr: there is none.
Result<std::shared_ptr<rocksdb::DB>> open_for_reading(const std::string& dir) {
  if (access((dir + "/db/CURRENT").c_str(), F_OK) != 0) return std::shared_ptr<rocksdb::DB>();
  rocksdb::DB* opened = nullptr;
  auto status = rocksdb::DB::OpenForReadOnly(options(), dir + "/db", &opened);
  if (!status.ok()) return database_error(dir, status);
  return std::shared_ptr<rocksdb::DB>(opened);
}

}  // namespace

// The lock is on the directory, so that removing the file opens nothing; earlier versions lock the
// file.
Result<RocksdbJournal::Locks> RocksdbJournal::lock_dir(const std::string& dir) {
  const std::string path = dir + "/lock";
  Locks locks{Fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
              Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600))};
  if (!locks.dir || !locks.file) return system_error(dir, "open " + path);
  for (const Fd* one : {&locks.dir, &locks.file}) {
    if (flock(one->get(), LOCK_EX | LOCK_NB) == 0) continue;
    if (errno == EWOULDBLOCK)
      return Error{Errc::conflict, dir + " is in use by another process" +
                                       holder(locks.file.get()) +
                                       ": a data directory serves one coordinator at a time"};
    // A file system without locks on directories has the file's only.
    if (one == &locks.file) return system_error(dir, "lock " + path);
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(locks.file.get(), 0) != 0 || !write_whole_at(locks.file.get(), pid, 0))
    return system_error(dir, "write " + path);
  return locks;
}

Result<std::unique_ptr<Journal>> RocksdbJournal::open(const std::string& data_dir) {
  auto journal = open_to_read(data_dir);
  if (!journal.ok()) return journal.error();
  if (auto begun = (*journal)->begin_writing(); !begun.ok()) return begun.error();
  return journal;
}

Result<std::unique_ptr<Journal>> RocksdbJournal::open_to_read(const std::string& data_dir,
                                                              Lost lost) {
  return open_as(data_dir, false, std::move(lost));
}

Result<std::unique_ptr<Journal>> RocksdbJournal::open_copy(const std::string& data_dir, Lost lost) {
  return open_as(data_dir, true, std::move(lost));
}

Result<std::unique_ptr<Journal>> RocksdbJournal::open_as(const std::string& data_dir, bool copy,
                                                         Lost lost) {
  if (auto made = make_dirs(data_dir); !made.ok()) return made.error();
  auto lock = lock_dir(data_dir);
  if (!lock.ok()) return lock.error();
  std::unique_ptr<RocksdbJournal> journal(
      new RocksdbJournal(data_dir, std::move(*lock), std::move(lost)));

  auto acknowledged = Watermark::read(data_dir + "/commit");
  auto db = open_for_reading(data_dir);
  if (!db.ok()) return db.error();
  Found found;
  if (*db != nullptr) {
    auto looked = look(data_dir, **db);
    if (!looked.ok()) return looked.error();
    found = *looked;
  }
  if (auto fine = judge(data_dir, found, acknowledged); !fine.ok()) return fine.error();
  if (const std::string id = noted_cluster(data_dir); !found.format && !id.empty()) {
    return Error{Errc::invalid,
                 cluster_file(data_dir) + " says that this is the state of cluster " + id +
                     ", but there is no database in " + data_dir +
                     "/db. Refusing to start as an empty cluster. Put the database back, or use "
                     "`muster restore` to continue from a backup; to abandon the cluster, remove "
                     "the whole directory",
                 {}};
  }
  if (!acknowledged && found.commit > 0 && !copy) {
    log::warn(
        "{}/commit is missing or damaged: a loss of acknowledged data would go unnoticed at this "
        "start",
        data_dir);
  }
  if (auto room = check_room(data_dir); !room.ok()) return room.error();
  journal->db_ = std::move(*db);
  journal->formatted_ = found.format.has_value();
  journal->last_commit_ = found.commit;
  if (journal->db_ == nullptr) {
    if (auto begun = journal->begin_writing(); !begun.ok()) return begun.error();
  }
  return std::unique_ptr<Journal>(std::move(journal));
}

std::string RocksdbJournal::noted_cluster(const std::string& data_dir) {
  std::ifstream in(cluster_file(data_dir));
  std::string id;
  in >> id;
  return id;
}

Status RocksdbJournal::note_cluster(const std::string& data_dir, const std::string& cluster_id) {
  if (!noted_cluster(data_dir).empty()) return Nothing{};
  const std::string path = cluster_file(data_dir), fresh = path + ".new";
  unlink(fresh.c_str());
  int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return system_error(data_dir, "make " + fresh);
  const std::string line = cluster_id + "\n";
  const bool written = write_whole(fd, line) && fsync(fd) == 0;
  close(fd);
  if (!written || rename(fresh.c_str(), path.c_str()) != 0)
    return system_error(data_dir, "write " + path);
  return sync_dir(data_dir);
}

Status RocksdbJournal::begin_writing() {
  if (watermark_) return Nothing{};
  rocksdb::DB* opened = nullptr;
  damage_ = std::make_shared<Damage>();
  auto with_damage = options();
  with_damage.listeners.push_back(damage_);
  auto status = rocksdb::DB::Open(with_damage, dir_ + "/db", &opened);
  if (!status.ok()) return database_error(dir_, status);
  std::shared_ptr<rocksdb::DB> db(opened);
  if (!formatted_) {
    rocksdb::WriteOptions synced;
    synced.sync = true;
    status = db->Put(synced, slice(keys::kFormat), std::to_string(wire::JOURNAL_FORMAT));
    if (!status.ok()) return database_error(dir_, status);
  }
  auto watermark = Watermark::open(dir_ + "/commit", [this](const Watermark& own) {
    if (!lost_ || !writes_) return;
    if (const Status s = files_there(own); !s) lost_(s.error().message);
  });
  if (!watermark.ok()) return watermark.error();
  if (auto noted = (*watermark)->note(last_commit_); !noted.ok()) return noted.error();
  auto parent = std::filesystem::path(dir_).parent_path().string();
  for (const std::string& path : {dir_, parent.empty() ? std::string(".") : parent}) {
    if (auto synced = sync_dir(path); !synced.ok()) return synced.error();
  }
  {
    std::lock_guard lock(db_mutex_);
    db_.swap(db);  // readers of the old one keep it open until they are done
  }
  watermark_ = std::move(*watermark);
  writes_ = true;
  return Nothing{};
}

std::shared_ptr<rocksdb::DB> RocksdbJournal::db() const {
  std::lock_guard lock(db_mutex_);
  return db_;
}

RocksdbJournal::RocksdbJournal(std::string dir, Locks locks, Lost lost)
    : dir_(std::move(dir)), locks_(std::move(locks)), lost_(std::move(lost)) {}

// The locks go last: from then on another process may open the journal.
RocksdbJournal::~RocksdbJournal() {
  watermark_.reset();
  db_.reset();
}

// What is written goes to files that still have their names.
Status RocksdbJournal::files_there(const Watermark& watermark) const {
  if (Status s = watermark.there(); !s) return s;
  const auto gone = [this](const std::string& path) {
    return Watermark::gone(dir_ + "/db" + path);
  };
  if (access((dir_ + "/db/CURRENT").c_str(), F_OK) != 0 && errno == ENOENT) return gone("/CURRENT");
  // RocksDB looks the log up on disk. One that is not there may have been replaced meanwhile.
  rocksdb::Status found;
  for (int tries = 2; tries > 0; --tries) {
    std::unique_ptr<rocksdb::LogFile> log;
    found = db_->GetCurrentWalFile(&log);
    if (!found.IsPathNotFound() && !found.IsNotFound()) return Nothing{};
  }
  return gone(": its log");
}

Status RocksdbJournal::commit(const std::vector<Row>& rows) {
  if (failed_)
    return Error{Errc::unavailable, dir_ + ": an earlier commit failed; restart the process"};
  if (auto begun = begin_writing(); !begun.ok()) {
    failed_ = true;
    return begun;
  }
  const uint64_t number = last_commit_ + 1;
  rocksdb::WriteBatch batch;
  rocksdb::Status status;
  if (merges_ && damage_->met()) {  // otherwise it would be retried forever
    merges_ = false;
    status = db_->SetOptions({{"disable_auto_compactions", "true"}});
    if (!status.ok()) log::warn("compaction could not be suspended: {}", status.ToString());
  }
  for (const Row& row : rows) {
    status = row.value ? batch.Put(row.key, *row.value) : batch.Delete(row.key);
    MUSTER_CHECK(status.ok(), status.ToString());
  }
  status = batch.Put(slice(keys::kCommit), std::to_string(number));
  MUSTER_CHECK(status.ok(), status.ToString());
  rocksdb::WriteOptions synced;
  synced.sync = true;
  status = db_->Write(synced, &batch);
  if (!status.ok()) {
    failed_ = true;
    return database_error(dir_, status);
  }
  if (auto noted = watermark_->note(number); !noted.ok()) {
    failed_ = true;
    return noted.error();
  }
  last_commit_ = number;
  return Nothing{};
}

Status RocksdbJournal::checkpoint(const std::string& dir) {
  auto db = this->db();
  rocksdb::Checkpoint* made = nullptr;
  auto status = rocksdb::Checkpoint::Create(db.get(), &made);
  if (!status.ok()) return database_error(dir_, status);
  std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  status = checkpoint->CreateCheckpoint(dir);
  if (!status.ok()) return database_error(dir_, status);
  return Nothing{};
}

Status RocksdbJournal::check() {
  auto status = db()->VerifyChecksum();
  if (!status.ok()) return database_error(dir_, status);
  return Nothing{};
}

Status RocksdbJournal::go_on_at(uint64_t commit) {
  MUSTER_CHECK(commit > last_commit_, commit, last_commit_.load());
  last_commit_ = commit - 1;
  return Nothing{};
}

namespace {

constexpr int kStepsMax = 8;  // calls of Next() to reach a nearby key; a seek costs about as much

// A damaged block fails only the reads that need it.
Error read_error(const rocksdb::Status& status) {
  if (status.IsCorruption())
    return {Errc::invalid, "a block of the database is damaged: " + status.ToString(), {}};
  return {Errc::unavailable, "the database can't be read: " + status.ToString(), {}};
}

Result<std::optional<std::string>> get_row(rocksdb::DB& db, const rocksdb::ReadOptions& options,
                                           std::string_view key) {
  std::string value;
  auto status = db.Get(options, slice(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return read_error(status);
  return std::optional(std::move(value));
}

Status walk_rows(rocksdb::DB& db, const rocksdb::ReadOptions& options, std::string_view prefix,
                 std::string_view from, const Rows::Walk& visit) {
  // The bound keeps the iterator from reading the block after the last of these rows, which may be
  // damaged.
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) ++end.back();
  const rocksdb::Slice bound(end);
  rocksdb::ReadOptions bounded = options;
  if (!end.empty()) bounded.iterate_upper_bound = &bound;
  std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(bounded));
  it->Seek(slice(from));
  while (it->Valid() && view(it->key()).starts_with(prefix)) {
    auto next = visit(view(it->key()), view(it->value()));
    if (!next) return Nothing{};
    it->Next();
    for (int steps = 0; it->Valid() && view(it->key()) < *next; ++steps) {
      if (steps < kStepsMax)
        it->Next();
      else
        it->Seek(*next);
    }
  }
  if (!it->status().ok()) return read_error(it->status());
  return Nothing{};
}

class Frozen final : public Rows {
 public:
  explicit Frozen(std::shared_ptr<rocksdb::DB> db) : db_(std::move(db)) {
    options_.snapshot = db_->GetSnapshot();
  }
  ~Frozen() override { db_->ReleaseSnapshot(options_.snapshot); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  Result<std::optional<std::string>> get(std::string_view key) override {
    return get_row(*db_, options_, key);
  }
  Status walk(std::string_view prefix, std::string_view from, const Walk& visit) override {
    return walk_rows(*db_, options_, prefix, from, visit);
  }

 private:
  std::shared_ptr<rocksdb::DB> db_;
  rocksdb::ReadOptions options_;
};

}  // namespace

Result<std::optional<std::string>> RocksdbJournal::get(std::string_view key) {
  return get_row(*db(), {}, key);
}

Status RocksdbJournal::walk(std::string_view prefix, std::string_view from, const Walk& visit) {
  return walk_rows(*db(), {}, prefix, from, visit);
}

namespace {

// Without it, a database opened for reading would rotate the writer's info log.
class NoLog final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

constexpr size_t kCopiedAtOnce = 1 << 20;  // bytes of copy_rows()
// Maximum number of attempts to open a database while its writer replaces files.
constexpr int kGlancesMax = 20;

std::optional<uint64_t> pid_of_holder(const std::string& dir) {
  const int fd = open((dir + "/lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<uint64_t> pid;
  char text[32];
  if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    const ssize_t n = pread(fd, text, sizeof text, 0);
    if (n > 0) pid = parse_number(std::string_view(text, static_cast<size_t>(n)));
  }
  close(fd);
  return pid;
}

}  // namespace

Result<RocksdbJournal::Glance> RocksdbJournal::glance(const std::string& data_dir) {
  const std::string current = data_dir + "/db/CURRENT";
  if (access(current.c_str(), R_OK) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return Error{Errc::not_found,
                   data_dir + " is neither a data-dir nor a backup: it has no database"};
    return system_error(data_dir, "read " + current);
  }
  Glance seen;
  rocksdb::Options quiet = options();
  quiet.info_log = std::make_shared<NoLog>();
  rocksdb::Status status;
  std::shared_ptr<rocksdb::DB> db;
  for (int i = 0; i < kGlancesMax && db == nullptr; ++i) {
    seen.acknowledged = Watermark::read(data_dir + "/commit");
    seen.pid = pid_of_holder(data_dir);
    rocksdb::DB* opened = nullptr;
    status = rocksdb::DB::OpenForReadOnly(quiet, data_dir + "/db", &opened);
    if (status.ok())
      db.reset(opened);
    else if (!seen.pid)
      break;
  }
  if (db == nullptr) return database_error(data_dir, status);
  auto found = look(data_dir, *db);
  if (!found.ok()) return found.error();
  if (auto known = judge(data_dir, *found, std::nullopt); !known.ok()) return known.error();
  if (!found->format)
    return Error{Errc::not_found, data_dir + " has an empty database: no coordinator has used it"};
  seen.format = wire::JOURNAL_FORMAT;
  seen.commit = found->commit;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir + "/db", failed)) {
    const uint64_t size = entry.file_size(failed);
    if (failed) continue;  // removed meanwhile
    ++seen.files;
    seen.bytes += size;
  }
  seen.rows = std::make_unique<Frozen>(std::move(db));
  return seen;
}

Status RocksdbJournal::copy_rows(const std::string& data_dir, const std::string& dir) {
  auto seen = glance(data_dir);
  if (!seen.ok()) return seen.error();
  Found found;
  found.format = std::to_string(seen->format);
  found.commit = seen->commit;
  if (Status fine = judge(data_dir, found, seen->acknowledged); !fine.ok()) return fine;
  if (mkdir((dir + "/db").c_str(), 0700) != 0) return system_error(dir, "make " + dir + "/db");
  rocksdb::Options quiet = options();
  quiet.info_log = std::make_shared<NoLog>();
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(quiet, dir + "/db", &opened);
  if (!status.ok()) return database_error(dir, status);
  const std::unique_ptr<rocksdb::DB> copy(opened);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::WriteBatch batch;
  Status read = seen->rows->scan("", [&](std::string_view key, std::string_view value) {
    batch.Put(slice(key), slice(value));
    if (batch.GetDataSize() < kCopiedAtOnce) return true;
    status = copy->Write(unlogged, &batch);
    batch.Clear();
    return status.ok();
  });
  if (!read.ok()) return read;
  if (status.ok()) status = copy->Write(unlogged, &batch);
  if (status.ok()) status = copy->Flush({});
  return status.ok() ? Status(Nothing{}) : Status(database_error(dir, status));
}

std::unique_ptr<Rows> RocksdbJournal::frozen() {
  return std::make_unique<Frozen>(db());
}

}  // namespace muster::storage
