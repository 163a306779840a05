// Backup: a copy of the journal that can be checked, and a data-dir made of one.
//
//   DIR/db/       RocksDB
//   DIR/commit    the watermark of the copy
//   DIR/manifest  lines: "muster-backup 1", "cluster ID", "epoch N", "commit N", and for each file
//                 "file SIZE FNV1A NAME"
//
// A directory is there whole or not at all: it is made beside as DIR.part and renamed. Directories
// are 0700, files 0600.
#pragma once

#include "base/result.hpp"
#include "storage/recovery.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::storage {

class RocksdbJournal;

struct BackupInfo {
  std::string cluster_id;
  uint64_t epoch = 0;
  uint64_t commit = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// Of a journal that is open and may be written meanwhile; from any thread. `conflict`: `dir` is
// there already. `invalid`: the journal is damaged, so this would be no backup.
Result<BackupInfo> make_backup(Journal& journal, const std::string& dir);

// Of a data-dir that nobody has open.
Result<BackupInfo> copy_backup(const std::string& data_dir, const std::string& dir);

// Compares all files with the manifest. not_found: there is no manifest.
Result<BackupInfo> check_backup(const std::string& dir);

struct Restored {
  BackupInfo from;
  bool checked = false;  // it had a manifest
  uint64_t epoch = 0;
  uint64_t commit = 0;
  uint64_t jobs = 0;  // that are not finished and go on
};

// What a restore draws from outside: the instant and a random number.
struct RestoreNow {
  Millis now_ms = 0;
  uint64_t nonce = 0;
};

// Makes `data_dir` (absent or empty) of the backup, or of the copy of a data-dir, in `from`. Epoch,
// commit numbers, job ids and attempts go on far above all that was given since the backup.
Result<Restored> restore(const std::string& from, const std::string& data_dir, RestoreNow now,
                         const LoadObject& load_object);

}  // namespace muster::storage
