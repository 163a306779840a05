#include "base/files/owned_path.hpp"

#include <algorithm>
#include <climits>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

bool only_by(uid_t user, const std::string& path) {
  constexpr int kLinksMax = 8;
  const auto one_of_us = [user](uid_t owner, bool theirs) {
    return owner == 0 || owner == geteuid() || (theirs && owner == user);
  };
  std::string rest = path, done;
  for (int links = 0; !rest.empty();) {
    if (rest.front() != '/') return false;
    // `done` is a directory; the next part of the path is in it.
    struct stat dir = {}, next = {};
    if (lstat(done.empty() ? "/" : done.c_str(), &dir) != 0 || !S_ISDIR(dir.st_mode)) return false;
    const size_t slash = std::min(rest.find('/', 1), rest.size());
    const std::string name = rest.substr(0, slash);
    rest.erase(0, slash);
    if (name == "/" || name == "/.") continue;
    if (name == "/..") return false;
    if (lstat((done + name).c_str(), &next) != 0) return false;
    if (!one_of_us(dir.st_uid, true)) return false;
    // In a directory like /tmp, only what is ours or root's is safe.
    const bool shared = (dir.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (shared && ((dir.st_mode & S_ISVTX) == 0 || !one_of_us(next.st_uid, false))) return false;
    if (!S_ISLNK(next.st_mode)) {
      done += name;
      continue;
    }
    std::string target(PATH_MAX, '\0');
    const ssize_t size = readlink((done + name).c_str(), target.data(), target.size());
    if (size <= 0 || ++links > kLinksMax) return false;
    target.resize(static_cast<size_t>(size));
    if (target.front() == '/') {
      done.clear();
      rest = target + rest;
    } else {
      rest = "/" + target + rest;
    }
  }
  return true;
}

}  // namespace muster
