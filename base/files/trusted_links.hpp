// Trusted links: opening a path whose symbolic links are followed only if their owner is trusted.
//
// Whoever may write to a directory on the way can put a link there that leads to a file of the one
// who opens it. So a link counts only if it belongs to root or to the user that the file is opened
// for; they could name the file that it points to as well.
#pragma once

#include <climits>
#include <sys/types.h>

namespace muster {

// A link that was not followed.
struct UntrustedLink {
  char path[PATH_MAX] = "";  // empty: there is none
  uid_t owner = 0;
};

// open(2), close-on-exec, that follows only links of root and of `user`, at most 40; with
// O_NOFOLLOW, none in the place of the file itself. -1, with errno; ELOOP with `untrusted` set:
// that link belongs to another user. System calls only, a single one if there is no link.
int open_by_trusted_links(const char* path, int flags, mode_t mode, uid_t user,
                          UntrustedLink& untrusted);

}  // namespace muster
