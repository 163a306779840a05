#include "core/spec/values/expansion.hpp"

namespace muster::core {

std::optional<std::string> expand(
    std::string_view text,
    const std::function<std::optional<std::string_view>(const std::string& name)>& find,
    size_t max) {
  if (text.size() <= max && text.find('$') == std::string_view::npos) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (out.size() > max) return std::nullopt;
    if (text[at] != '$' || at + 1 == text.size()) {
      out += text[at];
    } else if (text[at + 1] == '$') {
      out += '$';
      ++at;
    } else if (size_t close;
               text[at + 1] == '(' && (close = text.find(')', at)) != std::string_view::npos) {
      std::string name(text.substr(at + 2, close - at - 2));
      const auto value = find(name);
      if (value && value->size() > max - out.size()) return std::nullopt;
      if (value)
        out += *value;
      else
        out += "$(" + name + ")";
      at = close;
    } else {
      out += '$';
    }
  }
  if (out.size() > max) return std::nullopt;
  return out;
}

std::string unexpanded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

}  // namespace muster::core
