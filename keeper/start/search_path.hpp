// Search path: where execvp looks for a program that is named without a slash.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::keeper {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// What NAME may refer to, in order. A relative directory is resolved from `cwd`.
inline std::vector<std::string> programs_named(const std::string& name, std::string_view path,
                                               std::string_view cwd = ".") {
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> programs;
  while (true) {
    const size_t colon = path.find(':');
    std::string dir(path.substr(0, colon));
    if (dir.empty() || dir[0] != '/') dir = std::string(cwd) + "/" + dir;
    programs.push_back(dir + "/" + name);
    if (colon == std::string_view::npos) return programs;
    path.remove_prefix(colon + 1);
  }
}

}  // namespace muster::keeper
