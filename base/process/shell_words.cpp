#include "base/process/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace muster {

std::string shell_quoted(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./:=,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string typed_word(std::string_view word) {
  std::string text(word);
  for (size_t at = 0; (at = text.find("$$", at)) != std::string::npos; ++at) text.erase(at, 1);
  return shell_quoted(text);
}

}  // namespace muster
