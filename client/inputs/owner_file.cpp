#include "client/inputs/owner_file.hpp"

#include "base/files/trusted_links.hpp"
#include "base/peer/users.hpp"
#include "core/spec/fields/owner.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {

uid_t pods_user(const Json& job) {
  const Json& uid = at(job, {"metadata", "annotations", core::kOwnerUidKey.data()});
  if (!uid.is_string()) return geteuid();
  return core::owner_uid({{std::string(core::kOwnerUidKey), uid.get<std::string>()}})
      .value_or(geteuid());
}

Result<Fd> open_for_owner(const std::string& path, uid_t user, bool no_link) {
  UntrustedLink link;
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (no_link ? O_NOFOLLOW : 0);
  Fd file(open_by_trusted_links(path.c_str(), flags, 0, user, link));
  if (*link.path != '\0')
    return invalid(std::string(link.path) + " is a symbolic link of " + user_text(link.owner) +
                   ", and only those of " + user_text(user) + " and of root are followed");
  if (!file && errno == ELOOP && no_link)
    return invalid("it is a symbolic link, which is not followed");
  struct stat found {};
  if (!file || fstat(file.get(), &found) != 0) return invalid(std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return invalid("it is not a regular file");
  return file;
}

Status belongs_to(const Fd& file, uid_t user) {
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return invalid(std::strerror(errno));
  if (found.st_uid == user) return Nothing{};
  return invalid("it belongs to " + user_text(found.st_uid) + ", but the pod's files to " +
                 user_text(user));
}

}  // namespace muster::cli
