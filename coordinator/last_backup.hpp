// Last backup: when it was made, for the metrics; in the data-dir, so that a restart knows it.
//
//   last-backup := milliseconds since the epoch, decimal, "\n"
//
// Only backups through the running coordinator are noted. A data-dir that is restored from one
// begins without.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>

namespace muster::coordinator {

Status note_backup(const std::string& data_dir, Millis at_ms);
// nullopt: none is known.
std::optional<Millis> last_backup(const std::string& data_dir);

}  // namespace muster::coordinator
