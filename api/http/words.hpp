// Words: lists in one constant text, such as "get list watch".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// "a b c" -> a, b, c
inline std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!word.empty()) found.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return found;
}

inline bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::string_view first = text.substr(0, text.find(' '));
    if (!word.empty() && first == word) return true;
    text.remove_prefix(std::min(text.size(), first.size() + 1));
  }
  return false;
}

}  // namespace muster::api
