#include "base/text/yaml_entries.hpp"

#include "base/text/yaml_load.hpp"
#include "base/text/yaml_place.hpp"

#include <optional>
#include <utility>
#include <yaml-cpp/yaml.h>

namespace muster {
namespace {

constexpr int kDepthMax = 4;  // deeper than any configuration

class Reader {
 public:
  std::string problem;  // the first one

  std::optional<std::vector<YamlEntry>> map(const YAML::Node& node, int depth) {
    if (!node.IsMap() || depth > kDepthMax)
      return fail(node,
                  depth > kDepthMax ? "nested too deep" : "must be a map such as `api: 7117`");
    std::vector<YamlEntry> entries;
    for (const auto& pair : node) {
      if (!pair.first.IsScalar()) return fail(pair.first, "a key must be a scalar");
      YamlEntry& entry = entries.emplace_back();
      entry.key = pair.first.Scalar();
      entry.line = pair.first.Mark().line + 1;
      if (!value(pair.second, depth, entry)) return std::nullopt;
    }
    return entries;
  }

 private:
  std::nullopt_t fail(const YAML::Node& node, const char* what) {
    if (problem.empty()) problem = place(node.Mark()) + what;
    return std::nullopt;
  }

  bool value(const YAML::Node& node, int depth, YamlEntry& entry) {
    if (node.IsScalar()) {
      entry.values.push_back(node.Scalar());
    } else if (node.IsSequence()) {
      entry.shape = YamlEntry::Shape::list;
      for (const auto& item : node) {
        if (!item.IsScalar()) {
          fail(item, "list items must be scalars");
          return false;
        }
        entry.values.push_back(item.Scalar());
      }
    } else if (node.IsMap()) {
      entry.shape = YamlEntry::Shape::map;
      auto below = map(node, depth + 1);
      if (!below) return false;
      entry.below = std::move(*below);
    } else {
      entry.shape = YamlEntry::Shape::empty;
    }
    return true;
  }
};

}  // namespace

Result<std::vector<YamlEntry>> yaml_entries(const std::string& text) {
  try {
    const std::vector<YAML::Node> documents = load_all_yaml(text);
    if (documents.size() > 1)
      return Error{Errc::invalid, place(documents[1].Mark()) + "must be one document", {}};
    if (documents.empty() || documents.front().IsNull()) return std::vector<YamlEntry>();
    Reader reader;
    auto entries = reader.map(documents.front(), 1);
    if (!entries) return Error{Errc::invalid, reader.problem, {}};
    return std::move(*entries);
  } catch (const YAML::Exception& error) {
    return Error{Errc::invalid, place(error.mark) + error.msg, {}};
  }
}

}  // namespace muster
