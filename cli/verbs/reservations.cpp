#include "cli/verbs/reservations.hpp"

#include <map>

namespace muster::cli {

std::vector<core::Window> windows_on(const Json& node) {
  std::map<std::string, std::string> annotations;
  for (const auto& [key, value] : at(node, {"metadata", "annotations"}).items())
    if (value.is_string()) annotations[key] = value.get<std::string>();
  return core::windows_of(annotations);
}

std::string users_text(const core::Window& window) {
  std::string text;
  for (const std::string& user : window.users) text += (text.empty() ? "" : ",") + user;
  for (const auto& [group, gid] : window.groups) text += (text.empty() ? "@" : ",@") + group;
  return text.empty() ? "<none>" : text;
}

}  // namespace muster::cli
