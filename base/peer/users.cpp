#include "base/peer/users.hpp"

#include <charconv>
#include <pwd.h>
#include <vector>

namespace muster {
namespace {

constexpr size_t kEntryMax = 16u << 10;  // bytes

}  // namespace

std::optional<uid_t> find_user(const std::string& user) {
  uid_t number = 0;
  const char* end = user.data() + user.size();
  if (const auto read = std::from_chars(user.data(), end, number);
      read.ec == std::errc{} && read.ptr == end)
    return number;
  passwd entry = {};
  passwd* found = nullptr;
  std::vector<char> buffer(kEntryMax);
  if (getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found)
    return std::nullopt;
  return found->pw_uid;
}

std::optional<std::string> user_name(uid_t user) {
  passwd entry = {};
  passwd* found = nullptr;
  std::vector<char> buffer(kEntryMax);
  if (getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) != 0 || !found)
    return std::nullopt;
  return found->pw_name;
}

std::string user_text(uid_t user) {
  const std::string number = "uid " + std::to_string(user);
  const auto name = user_name(user);
  return name ? *name + " (" + number + ")" : number;
}

}  // namespace muster
