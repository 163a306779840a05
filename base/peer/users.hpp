// Users: names and numbers of the users of this machine, from the system's user database. A lookup
// may take as long as that database does, which may be a network service.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

namespace muster {

// The uid of a user given by name or number; absent: there is no such user.
std::optional<uid_t> find_user(const std::string& user);
// The name of a user; absent: the database has none.
std::optional<std::string> user_name(uid_t user);
// "mallory (uid 1001)", or "uid 1001" without a name.
std::string user_text(uid_t user);

}  // namespace muster
