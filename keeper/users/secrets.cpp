#include "keeper/users/secrets.hpp"

#include "base/process/in_child.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::keeper {

using core::node::kStringMax;

Secrets::Secrets(const std::vector<core::node::SecretFile>& files) {
  all_.reserve(files.size());
  for (const auto& file : files) {
    One& one = all_.emplace_back();
    one.name = file.variable;
    one.path = file.path;
    one.optional = file.optional;
    one.variable.resize(std::max(kStringMax, one.name.size() + 2));
    std::copy(one.name.begin(), one.name.end(), one.variable.begin());
    one.variable[one.name.size()] = '=';
  }
}

Secrets::~Secrets() {
  for (One& one : all_) explicit_bzero(one.variable.data(), one.variable.size());
}

void Secrets::add_to(std::vector<char*>& envp) {
  first_ = envp.size();
  for (One& one : all_) envp.push_back(one.variable.data());
}

MUSTER_IN_CHILD bool Secrets::read(uid_t owner, char** envp) noexcept {
  char** at = envp + first_;
  for (failed_ = 0; failed_ < all_.size(); ++failed_) {
    One& one = all_[failed_];
    bool missing = false;
    unread_ = false;
    why_ = read_one(one, owner, missing);
    if (missing && one.optional) {
      for (char** next = at; *next != nullptr; ++next) next[0] = next[1];
      continue;
    }
    if (why_ != nullptr) return false;
    ++at;
  }
  return true;
}

MUSTER_IN_CHILD const char* Secrets::read_one(One& one, uid_t owner, bool& missing) noexcept {
  // Not blocking, because it may be a pipe.
  const int fd = open(one.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    missing = errno == ENOENT || errno == ENOTDIR;
    unread_ = true;
    return strerrordesc_np(errno);
  }
  const char* why = nullptr;
  struct stat found {};
  char* const value = one.variable.data() + one.name.size() + 1;
  const size_t room = one.variable.size() - one.name.size() - 1;  // with the terminator
  size_t length = 0;
  if (fstat(fd, &found) != 0) {
    why = strerrordesc_np(errno);
  } else if (!S_ISREG(found.st_mode)) {
    why = "it is not a regular file";
  } else if (found.st_uid != owner) {
    why = "it must belong to the user that the pod runs as";
  } else if ((found.st_mode & 077) != 0) {
    why = "others can read or change it; chmod 600 it";
  }
  while (why == nullptr) {
    const ssize_t got = ::read(fd, value + length, room - length);
    if (got > 0) length += static_cast<size_t>(got);
    if (length == room) why = "it is longer than a variable can be (128 KiB)";
    if (got < 0 && errno != EINTR) {
      why = strerrordesc_np(errno);
      unread_ = true;
    }
    if (got == 0) break;
  }
  close(fd);
  if (why != nullptr) return why;
  if (memchr(value, '\0', length) != nullptr)
    return "it has a null byte, which no variable can have";
  if (length > 0 && value[length - 1] == '\n') --length;  // as editors and echo leave it
  value[length] = '\0';
  return nullptr;
}

size_t Secrets::failure(char* text, size_t size) const noexcept {
  if (failed_ >= all_.size() || why_ == nullptr) return 0;
  const One& one = all_[failed_];
  const int length = std::snprintf(text, size, "variable %s: secret %s: %s", one.name.c_str(),
                                   one.path.c_str(), why_);
  return length < 0 ? 0 : std::min(static_cast<size_t>(length), size - 1);
}

}  // namespace muster::keeper
