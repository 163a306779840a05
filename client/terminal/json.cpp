#include "client/terminal/json.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <cctype>

namespace muster::cli {
namespace {

const Json kNull;

// Whether YAML 1.1 could read this plain text as anything but this string.
bool needs_quotes(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0 ||
      std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    return true;
  }
  static constexpr std::string_view kLeading = "-?:,[]{}#&*!|>'\"%@`=~<";
  if (kLeading.find(text.front()) != std::string_view::npos) return true;
  if (std::isdigit(static_cast<unsigned char>(text.front())) != 0 || text.front() == '.' ||
      text.front() == '+')
    return true;
  std::string lower(text.size(), '\0');
  std::transform(text.begin(), text.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}) {
    if (lower == word) return true;
  }
  if (text.find(": ") != std::string::npos || text.find(" #") != std::string::npos ||
      text.back() == ':')
    return true;
  return text.find_first_of("\n\t") != std::string::npos || has_invisible(text);
}

std::string scalar(const Json& json) {
  if (!json.is_string()) return dumped(json);
  const auto& text = json.get_ref<const std::string&>();
  // A JSON string is valid YAML, except for surrogates.
  return needs_quotes(text) ? visible(dumped(json), Escapes::yaml) : text;
}

void write_yaml(std::string& out, const Json& json, size_t indent, bool in_list) {
  bool first = in_list;
  const auto begin_line = [&] {
    if (!first) out.append(indent, ' ');
    first = false;
  };
  const auto value = [&](const Json& v, bool of_list) {
    const bool nested = (v.is_object() || v.is_array()) && !v.empty();
    if (!nested) {
      out += (of_list ? "" : " ") + scalar(v) + "\n";
    } else if (of_list) {
      write_yaml(out, v, indent + 2, true);
    } else {
      out += "\n";
      write_yaml(out, v, v.is_array() ? indent : indent + 2, false);
    }
  };
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, v] : json.items()) {
      begin_line();
      out += scalar(Json(key)) + ":";
      value(v, false);
    }
  } else if (json.is_array() && !json.empty()) {
    for (const auto& v : json) {
      begin_line();
      out += "- ";
      value(v, true);
    }
  } else {
    out += scalar(json) + "\n";
  }
}

}  // namespace

void erase_members(Json& object, std::initializer_list<const char*> names) {
  if (!object.is_object()) return;
  for (const char* name : names) object.erase(name);
}

Json read_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

const Json& at(const Json& json, std::initializer_list<const char*> keys) {
  const Json* here = &json;
  for (const char* key : keys) {
    if (!here->is_object()) return kNull;
    const auto it = here->find(key);
    if (it == here->end()) return kNull;
    here = &*it;
  }
  return *here;
}

std::string text_at(const Json& json, std::initializer_list<const char*> keys) {
  const Json& value = at(json, keys);
  return value.is_string() ? value.get<std::string>() : "";
}

int64_t number_at(const Json& json, std::initializer_list<const char*> keys, int64_t otherwise) {
  const Json& value = at(json, keys);
  return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

const Json& condition_of(const Json& object, std::string_view type) {
  for (const Json& condition : at(object, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) == type && text_at(condition, {"status"}) == "True")
      return condition;
  }
  return kNull;
}

std::string to_yaml(const Json& json) {
  std::string out;
  write_yaml(out, json, 0, false);
  return out;
}

}  // namespace muster::cli
