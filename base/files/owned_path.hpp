// Owned path: who could have put what is at a path there.
//
// A path is only as trustworthy as the directories on the way to it: whoever may write to one of
// them, or owns it, can put something else in its place.
#pragma once

#include <string>
#include <sys/types.h>

namespace muster {

// Whether only root, this process's user and `user` could have put what is at this absolute path
// there. Symbolic links that they made are followed. In a directory like /tmp, only what belongs to
// root or to this process's user is safe.
bool only_by(uid_t user, const std::string& path);

}  // namespace muster
