// Search path: where execvp looks for a program that is named without a slash.
#pragma once

#include <string>
#include <string_view>

namespace muster::keeper {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// Calls found(candidate) for NAME in each directory of the path, in order, until it returns true.
// A relative directory is resolved from `cwd`.
template <class Found>
void search_path(const std::string& name, std::string_view path, std::string_view cwd,
                 Found&& found) {
  while (true) {
    const size_t colon = path.find(':');
    std::string candidate(path.substr(0, colon));
    if (candidate.empty() || candidate[0] != '/') candidate = std::string(cwd) + "/" + candidate;
    if (found(candidate + "/" + name) || colon == std::string_view::npos) return;
    path.remove_prefix(colon + 1);
  }
}

}  // namespace muster::keeper
