// Output client: has a keeper that runs as root open outputs of pods, which only their owners may
// read (keeper/users/output_server.hpp).
#pragma once

#include "agent/files/logs.hpp"

#include <kj/async-unix.h>
#include <kj/io.h>

#include <string>

namespace muster::agent {

// For reading; null: there is no such file. Rejected if the keeper does not answer within a few
// seconds, or refuses to open it. Never blocks.
kj::Promise<kj::AutoCloseFd> open_output(kj::UnixEventPort& port, const std::string& work_dir,
                                         const LogName& name);

}  // namespace muster::agent
