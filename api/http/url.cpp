#include "api/http/url.hpp"

namespace muster::api {
namespace {

int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size() || nibble(text[i + 1]) < 0 || nibble(text[i + 2]) < 0)
        return std::nullopt;
      out += static_cast<char>(nibble(text[i + 1]) * 16 + nibble(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

// Calls f(part) for each part between separators.
template <class F>
void split(std::string_view text, char separator, F f) {
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (const auto part = text.substr(0, end); !part.empty()) f(part);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

}  // namespace

std::optional<Url> Url::parse(std::string_view text) {
  text = text.substr(0, text.find('#'));
  const size_t mark = text.find('?');
  Url url;
  bool good = true;
  split(text.substr(0, mark), '/', [&](std::string_view part) {
    if (auto d = decoded(part, false))
      url.path.push_back(std::move(*d));
    else
      good = false;
  });
  if (mark != std::string_view::npos)
    split(text.substr(mark + 1), '&', [&](std::string_view part) {
      const size_t sign = part.find('=');
      auto name = decoded(part.substr(0, sign), true);
      auto value = decoded(
          sign == std::string_view::npos ? std::string_view() : part.substr(sign + 1), true);
      if (name && value) {
        url.query[*name] = *value;
        url.pairs.emplace_back(std::move(*name), std::move(*value));
      } else {
        good = false;
      }
    });
  if (!good) return std::nullopt;
  return url;
}

std::string Url::get(const std::string& name) const {
  auto it = query.find(name);
  return it == query.end() ? std::string() : it->second;
}

std::vector<std::string> Url::all(const std::string& name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : pairs)
    if (key == name) values.push_back(value);
  return values;
}

bool Url::flag(const std::string& name) const {
  const std::string value = get(name);
  return value == "true" || value == "True" || value == "TRUE" || value == "t" || value == "T" ||
         value == "1";
}

}  // namespace muster::api
