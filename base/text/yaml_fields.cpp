#include "base/text/yaml_fields.hpp"

#include "base/text/yaml_load.hpp"
#include "base/text/yaml_place.hpp"

#include <charconv>
#include <string>
#include <utility>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace muster {
namespace {

// One step from a node along a path: to a member or a list item.
struct Step {
  YAML::Node key, value;
  size_t length = 0;  // of the path that it consumes; 0: there is no such step

  // Not by assignment, which would change the node that `key` or `value` refers to.
  void set(const YAML::Node& to_key, const YAML::Node& to_value, size_t taken) {
    key.reset(to_key);
    value.reset(to_value);
    length = taken;
  }
};

// Follows "[3]" at the beginning of a path.
Step to_item(const YAML::Node& list, std::string_view path) {
  size_t number = 0;
  const size_t close = path.find(']');
  if (!path.starts_with('[') || close == std::string_view::npos) return {};
  const auto [end, error] = std::from_chars(path.data() + 1, path.data() + close, number);
  if (error != std::errc() || end != path.data() + close || number >= list.size()) return {};
  const YAML::Node item = list[number];
  Step step;
  step.set(item, item, close + 1);
  return step;
}

// How much of the path this key consumes: "key", "key." or "[key]"; 0 for another key.
size_t taken(std::string_view path, const std::string& key) {
  if (key.empty()) return 0;
  const bool bracket = path.starts_with('[');
  if (bracket) path.remove_prefix(1);
  if (!path.starts_with(key)) return 0;
  const size_t size = key.size();
  if (bracket) return path.size() > size && path[size] == ']' ? size + 2 : 0;
  return path.size() == size || path[size] == '.' || path[size] == '[' ? size : 0;
}

// The member with the longest matching key, since keys may contain dots.
Step to_member(const YAML::Node& map, std::string_view path) {
  Step best;
  const auto look = [&best, path](const YAML::Node& in, bool own) {
    for (const auto& member : in) {
      if (!member.first.IsScalar()) continue;
      const size_t length = taken(path, member.first.Scalar());
      if (length > best.length || (own && length != 0 && length == best.length))
        best.set(member.first, member.second, length);
    }
  };
  look(map, true);
  if (best.length != 0) return best;
  for (const auto& member : map) {
    if (!member.first.IsScalar() || member.first.Scalar() != "<<") continue;
    if (member.second.IsMap()) look(member.second, false);
    if (member.second.IsSequence())
      for (const YAML::Node& each : member.second)
        if (each.IsMap()) look(each, false);
  }
  return best;
}

}  // namespace

YamlFields::YamlFields(const YamlDocument& document)
    : begin_(document.place),
      source_(document.source),
      first_line_(document.first_line),
      number_(document.number) {}

std::shared_ptr<const YAML::Node> YamlFields::root() const {
  if (std::exchange(parsed_, true) || !source_) return root_;
  try {
    const std::vector<YAML::Node> all = load_all_yaml(*source_);
    if (number_ < all.size()) root_ = std::make_shared<const YAML::Node>(all[number_]);
  } catch (const YAML::Exception&) {
    // JSON that is not YAML: only the place of the document is known.
  }
  return root_;
}

YamlFields::Found YamlFields::find(std::string_view path) const {
  Found found{begin_, path.empty()};
  const auto root = this->root();
  if (!root) return found;
  YAML::Node here = *root;
  while (!path.empty()) {
    if (path.starts_with('.')) path.remove_prefix(1);
    const Step step = here.IsMap()        ? to_member(here, path)
                      : here.IsSequence() ? to_item(here, path)
                                          : Step{};
    if (step.length == 0) return found;
    path.remove_prefix(step.length);
    found = {text_place(step.key.Mark(), first_line_), path.empty()};
    here.reset(step.value);
  }
  return found;
}

}  // namespace muster
