// Private files: directories that only our user may enter, and files in them that only our user may
// read.
//
// A directory is checked through its open descriptor, so the directory checked is the one used.
// Files are 0600 and directories 0700 whatever the umask, and a symbolic link planted in place of a
// file or directory is never followed.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>
#include <sys/types.h>

namespace muster {

// Opens a directory of ours, creating it and its parents if missing. `what` names it in messages
// ("data-dir"). A directory open to others is closed to them. `invalid`: it is a link, belongs to
// another user, or was writable by others and holds their files.
Result<Fd> open_private_dir(const std::string& path, const std::string& what);

// Opens a file in such a directory, with flags of open(2): never through a link, owned by us, 0600.
// On failure errno is set: EPERM if another user owns it or it is not a regular file.
Fd open_private_file(int dir_fd, const std::string& name, int flags);

// Reads a whole file; nullopt if it is missing or can't be read.
std::optional<std::string> read_private_file(int dir_fd, const std::string& name);

// Writes NAME.new and renames it, so a reader sees either the whole old text or the whole new one.
// Durable on return.
Status replace_private_file(int dir_fd, const std::string& name, const std::string& text);

// From now on, files that this process creates are accessible to its own user only. Call before
// starting threads.
void close_umask();
// The umask before close_umask(); nullopt if that was not called.
std::optional<mode_t> umask_before();

}  // namespace muster
