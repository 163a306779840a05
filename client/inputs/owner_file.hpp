// Owner's file: opening a file that a job names, for whoever looks at the job.
//
// The job's owner chose the path, and whoever may write to a directory on the way could have put
// something else there. So a reader with more rights, such as an admin, must get what the owner's
// pods would get, not a file of the reader's own.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "client/terminal/json.hpp"

#include <cstddef>
#include <string>
#include <sys/types.h>

namespace muster::cli {

// As which user the job's pods run: its owner; ours, if the job has none.
uid_t pods_user(const Json& job);

// Opens a regular file for reading. Follows links of root and of `user` only, and with `no_link`
// none in the place of the file itself. Waits for no FIFO. invalid: says why it cannot be read.
Result<Fd> open_for_owner(const std::string& path, uid_t user, bool no_link = false);

// Whether it belongs to that user.
Status belongs_to(const Fd& file, uid_t user);

}  // namespace muster::cli
