// Offline: what is done with a data-dir or a backup that no coordinator serves.
#pragma once

#include "storage/backup.hpp"
#include "storage/verify.hpp"

#include <string>

namespace muster::coordinator {

// A backup of this data-dir.
Result<storage::BackupInfo> back_up_data_dir(const std::string& data_dir, const std::string& dir);

// A new data-dir of this backup, or of a copy of a data-dir.
Result<storage::Restored> restore_data_dir(const std::string& from, const std::string& data_dir);

// Recounts a data-dir or a backup.
Result<storage::Verified> verify_data_dir(const std::string& dir);

}  // namespace muster::coordinator
