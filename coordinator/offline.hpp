// Offline: operations on a data-dir or a backup by its files.
#pragma once

#include "storage/backup.hpp"
#include "storage/verify.hpp"

#include <string>

namespace muster::coordinator {

// Backs up a data-dir to `dir`, whether or not a coordinator has it open.
Result<storage::BackupInfo> back_up_data_dir(const std::string& data_dir, const std::string& dir);

// Creates a data-dir from a backup, or from a copy of a data-dir.
Result<storage::Restored> restore_data_dir(const std::string& from, const std::string& data_dir);

// Verifies a data-dir or a backup.
Result<storage::Verified> verify_data_dir(const std::string& dir);

}  // namespace muster::coordinator
