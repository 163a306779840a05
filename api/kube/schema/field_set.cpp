#include "api/kube/schema/field_set.hpp"

#include "base/text/json.hpp"

#include <algorithm>

namespace muster::api {
namespace {

using nlohmann::json;

std::string element_text(std::string_view element) {
  const std::string_view rest = element.substr(2);
  if (element.starts_with("f:")) return "." + std::string(rest);
  if (element.starts_with("v:")) return "[=" + std::string(rest) + "]";
  std::string text;
  const json keys = json::parse(rest, nullptr, false);  // flat, as good_element() has checked
  if (keys.is_object())
    for (const auto& [name, value] : keys.items())
      text += (text.empty() ? "" : ",") + name + "=" + dumped(value);
  return "[" + text + "]";
}

void walk_paths(const FieldSet& set, const std::string& path, size_t most,
                std::vector<std::string>& found) {
  constexpr size_t kShown = 1024;  // bytes; a longer path is cut, since all paths below repeat it
  if (set.member) found.push_back(path);
  for (const auto& [element, child] : set.children) {
    if (found.size() >= most) return;
    std::string text = path.size() < kShown ? path + element_text(element) : path;
    if (path.size() < kShown && text.size() > kShown) text = text.substr(0, kShown) + "…";
    walk_paths(child, text, most, found);
  }
}

// Elements by position (i:INDEX), which other writers may use, are rejected: they mean something
// else as soon as the list changes.
bool good_element(std::string_view element) {
  if (element.starts_with("f:")) return true;
  const bool key = element.starts_with("k:");
  if (!key && !element.starts_with("v:")) return false;
  const json value = json::parse(element.substr(2), nullptr, false);
  if (!key) return !value.is_discarded() && value.is_primitive();
  return value.is_object() && !value.empty() &&
         std::all_of(value.begin(), value.end(),
                     [](const json& one) { return one.is_primitive(); });
}

// Not recursive, because the levels below are already clean: sets can be 128 levels deep, and
// repeating the work at each level would be slow.
void drop_nothing(FieldSet& set) {
  std::erase_if(set.children, [](const auto& child) {
    return !child.second.member && child.second.children.empty();
  });
}

bool read(const json& from, FieldSet& to) {
  if (!from.is_object()) return false;
  if (from.empty()) to.member = true;
  for (const auto& [element, child] : from.items()) {
    if (element == ".") {
      if (child != json::object()) return false;
      to.member = true;
    } else if (!good_element(element) || !read(child, to.children[element])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool FieldSet::empty() const {
  return !member && std::all_of(children.begin(), children.end(),
                                [](const auto& child) { return child.second.empty(); });
}

void FieldSet::prune() {
  for (auto& [element, child] : children) child.prune();
  drop_nothing(*this);
}

const FieldSet& FieldSet::below(std::string_view element) const {
  static const FieldSet kNone;
  auto it = children.find(element);
  return it == children.end() ? kNone : it->second;
}

FieldSet united(FieldSet a, FieldSet b) {
  a.member = a.member || b.member;
  a.children.merge(b.children);  // what both have stays in b
  for (auto& [element, child] : b.children) {
    FieldSet& mine = a.children.find(element)->second;
    mine = united(std::move(mine), std::move(child));
  }
  return a;
}

FieldSet common(const FieldSet& a, const FieldSet& b) {
  FieldSet both;
  both.member = a.member && b.member;
  for (const auto& [element, child] : a.children)
    if (auto it = b.children.find(element); it != b.children.end())
      both.children[element] = common(child, it->second);
  drop_nothing(both);
  return both;
}

FieldSet without(FieldSet a, const FieldSet& b) {
  a.member = a.member && !b.member;
  for (auto& [element, child] : a.children)
    if (auto it = b.children.find(element); it != b.children.end())
      child = without(std::move(child), it->second);
  drop_nothing(a);
  return a;
}

std::vector<std::string> paths(const FieldSet& set, size_t most) {
  std::vector<std::string> found;
  walk_paths(set, "", most, found);
  return found;
}

json to_fields_v1(const FieldSet& set) {
  json out = json::object();
  for (const auto& [element, child] : set.children) {
    json below = to_fields_v1(child);
    if (child.member || !below.empty()) out[element] = std::move(below);
  }
  if (set.member && !out.empty()) out["."] = json::object();
  return out;
}

std::optional<FieldSet> from_fields_v1(const json& from) {
  FieldSet set;
  if (!read(from, set)) return std::nullopt;
  set.member = false;  // no manager owns the object as a whole
  return set;
}

}  // namespace muster::api
