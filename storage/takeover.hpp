// Takeover: a data-dir that another one has succeeded must not be served again, or a cluster would
// have two coordinators until an agent that knows the newer one appears.
//
//   DATA_DIR/taken-over   text: by what, and since when; it may be written by hand
//
// The mark reaches as far as the file system does: a head that is on another machine, or that comes
// back with its disk, must be marked there (docs/machines.md).
#pragma once

#include "base/result.hpp"

#include <optional>
#include <string>

namespace muster::storage {

constexpr const char* kTakenOver = "taken-over";

// Marks `data_dir` if it is the state of this cluster and no process serves it. False: it is not,
// or it is in use, or cannot be written.
bool mark_taken_over(const std::string& data_dir, const std::string& cluster_id,
                     const std::string& by);

// Why a coordinator must not start on this data-dir, and the way out; nullopt: it may.
std::optional<Error> refuses_taken_over(const std::string& data_dir);

}  // namespace muster::storage
