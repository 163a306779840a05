// Unix port: listens on a Unix socket in the file system.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <string>
#include <sys/types.h>

namespace muster::api {

// Listens at this path with this mode; paths longer than the 108 bytes of an address work too. A
// stale socket, left by a crash, is replaced. `invalid`: the path is taken by something else, or
// the socket cannot be created.
Result<Fd> listen_unix(const std::string& path, mode_t mode);

}  // namespace muster::api
