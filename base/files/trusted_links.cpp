#include "base/files/trusted_links.hpp"

#include "base/process/in_child.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster {
namespace {

constexpr int kLinksMax = 40;  // as the kernel has it

MUSTER_IN_CHILD int open_without_links(const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

// Takes one part after the other, so that each link can be looked at before it is followed. What is
// looked at is held open, so nothing can be put in its place meanwhile.
class LinkWalk {
 public:
  MUSTER_IN_CHILD LinkWalk(uid_t user, UntrustedLink& untrusted)
      : user_(user), untrusted_(untrusted) {}
  LinkWalk(const LinkWalk&) = delete;
  LinkWalk& operator=(const LinkWalk&) = delete;

  MUSTER_IN_CHILD int open_file(const char* path, int flags, mode_t mode) {
    const int file = begin_with(path, "") ? walk(flags, mode) : -1;
    const int error = errno;
    enter(AT_FDCWD);
    errno = error;
    return file;
  }

 private:
  MUSTER_IN_CHILD int walk(int flags, mode_t mode) {
    while (take_name()) {
      const bool last = *rest_ == '\0';
      if (last && (flags & O_NOFOLLOW) != 0) return openat(dir_, name_, flags, mode);
      const int found = openat(dir_, name_, O_PATH | O_NOFOLLOW | O_CLOEXEC);
      struct stat seen {};
      if (found < 0 && !last) return -1;
      if (found < 0 || fstat(found, &seen) != 0 || !S_ISLNK(seen.st_mode)) {
        if (!last) {
          enter(found);
          continue;
        }
        if (found >= 0) close(found);
        return openat(dir_, name_, flags | O_NOFOLLOW, mode);
      }
      const bool followed = follow(found, seen.st_uid);
      const int error = errno;
      close(found);
      errno = error;
      if (!followed) return -1;
    }
    return -1;
  }

  MUSTER_IN_CHILD void enter(int dir) {
    if (dir_ >= 0) close(dir_);
    dir_ = dir;
  }

  MUSTER_IN_CHILD bool follow(int link, uid_t owner) {
    if (owner != 0 && owner != user_) {
      note(link, owner);
      errno = ELOOP;
      return false;
    }
    if (++links_ > kLinksMax) {
      errno = ELOOP;
      return false;
    }
    char target[PATH_MAX];
    const ssize_t size = readlinkat(link, "", target, sizeof target - 1);
    if (size < 0) return false;
    target[size] = '\0';
    return begin_with(target, rest_);
  }

  MUSTER_IN_CHILD void note(int link, uid_t owner) {
    char self[32];
    std::snprintf(self, sizeof self, "/proc/self/fd/%d", link);
    const ssize_t size = readlink(self, untrusted_.path, sizeof untrusted_.path - 1);
    if (size > 0)
      untrusted_.path[size] = '\0';
    else  // without /proc
      std::memcpy(untrusted_.path, name_, sizeof name_);
    untrusted_.owner = owner;
  }

  // Continues with `path`, and then with `more`, which may be in text_.
  MUSTER_IN_CHILD bool begin_with(const char* path, const char* more) {
    const size_t size = std::strlen(path), rest = std::strlen(more);
    if (size == 0 || size + rest + 2 > sizeof text_) {
      errno = size == 0 ? ENOENT : ENAMETOOLONG;
      return false;
    }
    std::memmove(text_ + size + 1, more, rest + 1);
    std::copy_n(path, size, text_);
    text_[size] = '/';
    rest_ = text_;
    if (*path == '/') enter(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    return dir_ >= 0 || dir_ == AT_FDCWD;
  }

  // Moves the next part to name_.
  MUSTER_IN_CHILD bool take_name() {
    while (*rest_ == '/') ++rest_;
    size_t size = 0;
    while (rest_[size] != '/' && rest_[size] != '\0') ++size;
    if (size > NAME_MAX) {
      errno = ENAMETOOLONG;
      return false;
    }
    std::memcpy(name_, size == 0 ? "." : rest_, size == 0 ? 1 : size);
    name_[size == 0 ? 1 : size] = '\0';
    rest_ += size;
    while (*rest_ == '/') ++rest_;
    return true;
  }

  const uid_t user_;
  UntrustedLink& untrusted_;
  int dir_ = AT_FDCWD;
  int links_ = 0;
  char text_[PATH_MAX];
  const char* rest_ = text_;  // what is still to be taken, in text_
  char name_[NAME_MAX + 1];
};

}  // namespace

MUSTER_IN_CHILD int open_by_trusted_links(const char* path, int flags, mode_t mode, uid_t user,
                                          UntrustedLink& untrusted) {
  const int file = open_without_links(path, flags | O_CLOEXEC, mode);
  // ENOSYS and EPERM: where system calls are filtered.
  if (file >= 0 || (errno != ELOOP && errno != ENOSYS && errno != EPERM)) return file;
  return LinkWalk(user, untrusted).open_file(path, flags | O_CLOEXEC, mode);
}

}  // namespace muster
