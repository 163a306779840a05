#include "core/spec/values/window.hpp"

#include "core/spec/values/instant.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace muster::core {

namespace {

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (end > 0) words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  return list;
}

bool read_groups(std::string_view list, Window& window) {
  for (const std::string& word : words_of(list)) {
    const size_t colon = word.rfind(':');
    uint32_t gid = 0;
    const char* const begin = word.data() + (colon == std::string::npos ? 0 : colon + 1);
    const auto [end, error] = std::from_chars(begin, word.data() + word.size(), gid);
    if (colon == std::string::npos || error != std::errc{} || end != word.data() + word.size())
      return false;
    window.groups.emplace_back(word.substr(0, colon), gid);
  }
  return !window.groups.empty();
}

// Takes "key=value"; the value of `reason` is the rest of the text. Returns what is wrong.
std::string take_field(std::string_view& text, Window& window) {
  const size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const bool last = key == "reason";
  const size_t end = last ? text.size() : std::min(text.find(' '), text.size());
  if (equals == std::string_view::npos || equals > end)
    return "`" + std::string(text.substr(0, end)) + "`: must be KEY=VALUE";
  const std::string_view value = text.substr(equals + 1, end - equals - 1);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (key == "from" || key == "until") {
    const auto at = read_instant(value);
    if (!at) return std::string(key) + ": must be an instant such as 2026-12-01T18:00:00Z";
    (key == "from" ? window.from_ms : window.until_ms) = *at;
  } else if (key == "users") {
    window.users = words_of(value);
    if (window.users.empty()) return "users: must be names, separated by commas";
  } else if (key == "groups") {
    if (!read_groups(value, window)) return "groups: must be NAME:GID, separated by commas";
  } else if (key == "by") {
    window.by = value;
  } else if (last) {
    window.reason = value;
  } else {
    return "`" + std::string(key) + "`: must be from, until, users, groups, by or reason";
  }
  return "";
}

}  // namespace

std::string window_text(const Window& window) {
  std::string text = "from=" + utc_text(window.from_ms) + " until=" + utc_text(window.until_ms);
  if (!window.users.empty()) text += " users=" + list_of(window.users);
  std::vector<std::string> groups;
  for (const auto& [name, gid] : window.groups) groups.push_back(name + ":" + std::to_string(gid));
  if (!groups.empty()) text += " groups=" + list_of(groups);
  if (!window.by.empty()) text += " by=" + window.by;
  if (!window.reason.empty()) text += " reason=" + window.reason;
  return text;
}

std::optional<Window> read_window(std::string_view name, std::string_view text,
                                  std::string& wrong) {
  Window window{.name = std::string(name)};
  for (wrong.clear(); !text.empty() && wrong.empty();) wrong = take_field(text, window);
  if (wrong.empty() && (window.from_ms == 0 || window.until_ms <= window.from_ms))
    wrong = "must have from and until, which must be later";
  return wrong.empty() ? std::optional(std::move(window)) : std::nullopt;
}

std::vector<Window> windows_of(const std::map<std::string, std::string>& annotations) {
  std::vector<Window> windows;
  std::string wrong;
  for (auto it = annotations.lower_bound(std::string(kWindowKeys));
       it != annotations.end() && it->first.starts_with(kWindowKeys); ++it)
    if (auto window = read_window(it->first.substr(kWindowKeys.size()), it->second, wrong))
      windows.push_back(std::move(*window));
  return windows;
}

void sign_windows(const std::map<std::string, std::string>& before,
                  std::map<std::string, std::string>& now, const std::string& by) {
  for (Window& window : windows_of(now)) {
    const std::string key = std::string(kWindowKeys) + window.name;
    const auto was = before.find(key);
    if (was != before.end() && was->second == now.at(key)) continue;
    window.by = by;
    std::ranges::replace(window.by, ' ', '-');  // "uid 1001"
    now[key] = window_text(window);
  }
}

}  // namespace muster::core
