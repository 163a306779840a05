// Local sockets: where a coordinator puts its Unix sockets by default, and where clients and agents
// on the same machine look for them.
//
// A user's sockets are in $XDG_RUNTIME_DIR/muster or, without one, in /tmp/muster-UID; those of
// root and of a site's coordinator in /run/muster. Whoever connects still checks who serves them
// (TrustedServers).
#pragma once

#include "base/result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster {

inline constexpr char kApiSocket[] = "api.sock", kAgentsSocket[] = "agents.sock";

// Creates this user's directory for sockets, with mode 0700 (0755 for /run/muster). `invalid`: it
// cannot be created, or belongs to another user.
Result<std::string> make_runtime_dir();

// The paths of the sockets of this name: the user's own, then the site's.
std::vector<std::string> socket_paths(const std::string& name);

// The first path at which a process listens. If there is none, the site's socket, if it exists,
// since its coordinator may be restarting.
std::optional<std::string> find_socket(const std::vector<std::string>& paths);

}  // namespace muster
