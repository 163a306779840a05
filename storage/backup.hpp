// Backup: a copy of the journal that can be verified, and restoring a data-dir from one.
//
//   DIR/db/       RocksDB
//   DIR/commit    the watermark of the copy
//   DIR/manifest  lines: "muster-backup 1", "cluster ID", "epoch N", "commit N", "origin DATA_DIR",
//                 and for each file "file SIZE FNV1A NAME"
//
// A backup or restored data-dir is complete or absent: it is built as DIR.part and renamed.
// Directories are 0700, files 0600.
#pragma once

#include "base/result.hpp"
#include "core/journal_facts.hpp"
#include "storage/recovery.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::storage {

class RocksdbJournal;

using core::BackupInfo;

// Backs up the open journal of `data_dir`, which may be written concurrently. Any thread may call
// it. `conflict`: `dir` already exists. `invalid`: the journal is damaged, so a copy of it would
// not be a backup; or others could meddle with it there (part_dir.hpp).
Result<BackupInfo> make_backup(Journal& journal, const std::string& dir,
                               const std::string& data_dir);

// Likewise, of a data-dir by its files, whether or not a process has it open: a coordinator that
// follows another one, say.
Result<BackupInfo> copy_backup(const std::string& data_dir, const std::string& dir);

// Compares all files with the manifest. not_found: there is no manifest.
Result<BackupInfo> check_backup(const std::string& dir);

struct Restored {
  BackupInfo from;
  bool checked = false;  // the source had a manifest and matched it
  uint64_t epoch = 0;
  uint64_t commit = 0;
  uint64_t jobs = 0;         // unfinished jobs, which continue
  std::string taken_over{};  // a data-dir that no coordinator will serve again; empty: none
};

// External inputs to a restore: the time and a random number.
struct RestoreNow {
  Millis now_ms = 0;
  uint64_t nonce = 0;
};

// Creates `data_dir` (absent or empty) from the backup, or the copy of a data-dir, in `from`.
// Epoch, commit numbers, job ids and attempts continue far above everything issued since the
// backup. The data-dir that it succeeds is marked (takeover.hpp) if it is still where it was, on
// this machine, and no coordinator serves it.
Result<Restored> restore(const std::string& from, const std::string& data_dir, RestoreNow now,
                         const LoadObject& load_object);

}  // namespace muster::storage
