#include "storage/backup.hpp"

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "base/files/private_files.hpp"
#include "core/job/fold/restored.hpp"
#include "core/job/fold/text.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/journal/text_number.hpp"
#include "storage/journal/watermark.hpp"
#include "storage/part_dir.hpp"
#include "storage/rows/rows.hpp"
#include "storage/takeover.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "muster-backup 1";
constexpr int kCopiesMax = 5;
constexpr size_t kRowsMax = 2'000;  // per commit of a restore, roughly

Error failed(const std::string& what) {
  return {Errc::unavailable, what + ": " + std::strerror(errno)};
}

struct Sum {
  uint64_t size = 0;
  uint64_t hash = kFnvBasis;
};

Result<Sum> sum_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return failed("can't read " + path);
  Sum sum;
  std::array<char, 1 << 16> bytes;
  while (in.read(bytes.data(), bytes.size()) || in.gcount() > 0) {
    sum.size += static_cast<uint64_t>(in.gcount());
    sum.hash = fnv1a({bytes.data(), static_cast<size_t>(in.gcount())}, sum.hash);
  }
  if (in.bad()) return failed("can't read " + path);
  return sum;
}

std::string hex(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// Sorted names of a backup's files, without the manifest.
Result<std::vector<std::string>> files_of(const std::string& dir) {
  std::vector<std::string> names{"commit"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir + "/db", error))
    names.push_back("db/" + entry.path().filename().string());
  if (error) return Error{Errc::unavailable, "can't list " + dir + "/db: " + error.message()};
  std::sort(names.begin(), names.end());
  return names;
}

Status copy_database(const std::string& from, const std::string& to) {
  std::error_code error;
  if (mkdir((to + "/db").c_str(), 0700) != 0) return failed("can't make " + to + "/db");
  for (const auto& entry : fs::directory_iterator(from + "/db", error)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || name == "LOCK" || name.starts_with("LOG")) continue;
    fs::copy_file(entry.path(), to + "/db/" + name, error);
    if (error)
      return Error{Errc::unavailable,
                   "can't copy " + entry.path().string() + ": " + error.message()};
  }
  if (error) return Error{Errc::unavailable, "can't read " + from + "/db: " + error.message()};
  return Nothing{};
}

// Repeatedly, since the process that has it open may remove files meanwhile.
Status copy_in_use(const std::string& from, const std::string& to) {
  Status copied = Nothing{};
  for (int i = 0; i < kCopiesMax; ++i) {
    copied = RocksdbJournal::copy_rows(from, to);
    if (copied.ok() || copied.error().code != Errc::unavailable) break;
    std::error_code ignored;
    fs::remove_all(to + "/db", ignored);
  }
  return copied;
}

// Verifies the database in `dir`, a copy of that in `data_dir`, and adds the watermark and the
// manifest.
Result<BackupInfo> finish_backup(const std::string& dir, const std::string& data_dir) {
  BackupInfo info;
  info.origin = resolved(data_dir).value_or("");
  if (info.origin.find('\n') != std::string::npos) info.origin.clear();
  {
    auto journal = RocksdbJournal::open_copy(dir);
    if (!journal.ok()) return journal.error();
    if (Status sound = (*journal)->check(); !sound.ok())
      return Error{
          Errc::invalid,
          sound.error().message +
              "; damaged state cannot be backed up. Run `muster verify` to see what is damaged"};
    auto head = recover_head(**journal);
    if (!head.ok()) return head.error();
    info.cluster_id = head->cluster_id;
    info.epoch = head->epoch;
    info.commit = head->commit;
  }
  for (const char* name : {"/lock", "/db/LOCK", "/commit"}) unlink((dir + name).c_str());
  {
    auto watermark = Watermark::open(dir + "/commit");
    if (!watermark.ok()) return watermark.error();
    if (Status noted = (*watermark)->note(info.commit); !noted.ok()) return noted.error();
  }
  auto names = files_of(dir);
  if (!names.ok()) return names.error();
  std::ostringstream manifest;
  manifest << kHead << "\ncluster " << info.cluster_id << "\nepoch " << info.epoch << "\ncommit "
           << info.commit << "\n";
  if (!info.origin.empty()) manifest << "origin " << info.origin << "\n";
  for (const std::string& name : *names) {
    auto sum = sum_of(dir + "/" + name);
    if (!sum.ok()) return sum.error();
    manifest << "file " << sum->size << " " << hex(sum->hash) << " " << name << "\n";
    ++info.files;
    info.bytes += sum->size;
  }
  const Fd top(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top) return failed("can't open " + dir);
  if (Status written = replace_private_file(top.get(), "manifest", manifest.str()); !written.ok())
    return written.error();
  return info;
}

// Whether `dir` exists and is not empty.
bool occupied(const std::string& dir) {
  std::error_code error;
  return access(dir.c_str(), F_OK) == 0 && !fs::is_empty(dir, error);
}

}  // namespace

Result<BackupInfo> make_backup(Journal& journal, const std::string& dir,
                               const std::string& data_dir) {
  const auto place = backup_place(dir, data_dir);
  if (!place.ok()) return place.error();
  auto part = PartDir::make(*place, data_dir);
  if (!part.ok()) return part.error();
  if (Status copied = journal.checkpoint(part->path() + "/db"); !copied.ok()) return copied.error();
  auto info = finish_backup(part->path(), data_dir);
  if (!info.ok()) return info.error();
  if (Status finished = part->finish(); !finished.ok()) return finished.error();
  return info;
}

Result<BackupInfo> copy_backup(const std::string& data_dir, const std::string& dir) {
  if (access((data_dir + "/db/CURRENT").c_str(), F_OK) != 0)
    return Error{Errc::not_found, data_dir + " is not a data-dir: it has no database"};
  const auto place = backup_place(dir, data_dir);
  if (!place.ok()) return place.error();
  // Takes the lock, and refuses a journal that lost acknowledged data.
  auto journal = RocksdbJournal::open_to_read(data_dir);
  const bool in_use = !journal.ok() && journal.error().code == Errc::conflict;
  if (!journal.ok() && !in_use) return journal.error();
  auto part = PartDir::make(*place, data_dir);
  if (!part.ok()) return part.error();
  if (Status copied =
          in_use ? copy_in_use(data_dir, part->path()) : copy_database(data_dir, part->path());
      !copied.ok())
    return copied.error();
  auto info = finish_backup(part->path(), data_dir);
  if (!info.ok()) return info.error();
  if (Status finished = part->finish(); !finished.ok()) return finished.error();
  return info;
}

Result<BackupInfo> check_backup(const std::string& dir) {
  std::ifstream in(dir + "/manifest");
  std::string line;
  if (!in) return Error{Errc::not_found, dir + " is not a backup: it has no manifest"};
  auto broken = [&dir](const std::string& why) {
    return Error{Errc::invalid, dir + ": the backup is damaged: " + why};
  };
  if (!std::getline(in, line) || line != kHead)
    return Error{Errc::invalid, dir + "/manifest: its first line is \"" + line + "\", must be \"" +
                                    std::string(kHead) + "\""};
  BackupInfo info;
  std::vector<std::string> listed;
  while (std::getline(in, line)) {
    constexpr std::string_view kOrigin = "origin ";
    if (line.starts_with(kOrigin)) info.origin = line.substr(kOrigin.size());
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "cluster") words >> info.cluster_id;
    if (word == "epoch") words >> info.epoch;
    if (word == "commit") words >> info.commit;
    if (word != "file") continue;
    uint64_t size = 0;
    std::string hash, name;
    if (!(words >> size >> hash >> name)) return broken("malformed manifest line \"" + line + "\"");
    auto sum = sum_of(dir + "/" + name);
    if (!sum.ok()) return broken(sum.error().message);
    if (sum->size != size || hex(sum->hash) != hash)
      return broken(name + " has changed since the backup was made");
    listed.push_back(name);
    ++info.files;
    info.bytes += size;
  }
  auto names = files_of(dir);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names)
    if (!std::binary_search(listed.begin(), listed.end(), name) && name != "db/LOCK" &&
        !name.starts_with("db/LOG"))
      return broken(name + " is not in the manifest");
  return info;
}

Result<Restored> restore(const std::string& from, const std::string& data_dir, RestoreNow now,
                         const LoadObject& load_object) {
  if (access((from + "/db/CURRENT").c_str(), F_OK) != 0)
    return Error{Errc::not_found, from + " is neither a backup nor a data-dir: it has no database"};
  if (occupied(data_dir))
    return Error{Errc::conflict, data_dir +
                                     " is not empty: a restore creates a new data-dir. Move the "
                                     "old one away, and keep it until the restored one works"};
  Restored done;
  auto checked = check_backup(from);
  if (!checked.ok() && checked.error().code != Errc::not_found) return checked.error();
  done.checked = checked.ok();
  rmdir(data_dir.c_str());  // succeeds only if it is empty
  auto part = PartDir::make(data_dir);
  if (!part.ok()) return part.error();
  if (Status copied = copy_database(from, part->path()); !copied.ok()) return copied.error();
  {
    auto journal = RocksdbJournal::open_copy(part->path());
    if (!journal.ok()) return journal.error();
    if (Status begun = (*journal)->begin_writing(); !begun.ok()) return begun.error();
    if (Status sound = (*journal)->check(); !sound.ok()) return sound.error();
    auto recovered = recover(**journal, load_object, [](const core::JobSummary&) {});
    if (!recovered.ok()) return recovered.error();
    done.from.cluster_id = recovered->cluster_id;
    done.from.epoch = recovered->epoch;
    done.from.commit = recovered->commit;
    // Far above anything issued since the backup: microseconds since 1970 grow faster than commits
    // and job ids, milliseconds faster than starts.
    const auto micros = static_cast<uint64_t>(now.now_ms) * 1000;
    done.epoch = std::max(recovered->epoch + 1'000, static_cast<uint64_t>(now.now_ms));
    done.commit = std::max(recovered->commit + 1'000'000, micros);
    const JobId next_job = std::max<JobId>(recovered->next_job_id + 1'000'000, micros);
    if (Status moved = (*journal)->go_on_at(done.commit); !moved.ok()) return moved.error();
    std::vector<Row> rows;
    for (uint64_t outdated : recovered->outdated_line) rows.push_back(forget_line_row(outdated));
    for (const core::EpochEntry& entry : recovered->line.entries())
      if (entry.first_commit == 0) rows.push_back(line_row(entry));
    rows.push_back(line_row({done.epoch, now.nonce, done.commit, true}));
    rows.push_back(epoch_row(done.epoch, now.nonce));
    rows.push_back(next_job_row(next_job));
    // Revocations since the backup are unknown here, so none of its tokens remains valid.
    for (const auto& [id, token] : recovered->trust.tokens) rows.push_back(forget_token_row(id));
    const uint32_t base = core::restored_base(now.now_ms);
    for (const RecoveredJob& r : recovered->jobs) {
      if (r.job.state().forgotten) continue;
      ++done.jobs;
      auto more = snapshot_rows(r.job.id(), core::restored(r.job.state(), r.job.indexed(), base),
                                r.next_seq - 1, r.next_seq - r.tail_rows);
      std::move(more.begin(), more.end(), std::back_inserter(rows));
      if (rows.size() < kRowsMax) continue;
      if (Status written = (*journal)->commit(rows); !written.ok()) return written.error();
      rows.clear();
    }
    if (Status written = (*journal)->commit(rows); !written.ok()) return written.error();
    done.commit = (*journal)->last_commit();
  }
  if (Status finished = part->finish(); !finished.ok()) return finished.error();
  const std::string origin = checked.ok() ? checked->origin : resolved(from).value_or("");
  const std::string successor = resolved(data_dir).value_or("");
  if (!origin.empty() && origin != successor &&
      mark_taken_over(origin, done.from.cluster_id,
                      successor + ", restored at " + core::instant_text(now.now_ms)))
    done.taken_over = origin;
  return done;
}

}  // namespace muster::storage
