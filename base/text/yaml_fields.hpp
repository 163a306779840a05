// YamlFields: finds the fields of a document in its text, for messages about them.
#pragma once

#include "base/text/yaml.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace YAML {
class Node;
}

namespace muster {

class YamlFields {
 public:
  // Parses the document again when the first field is looked up.
  explicit YamlFields(const YamlDocument& document);

  struct Found {
    TextPlace place;
    bool exact = false;  // false: the place of an enclosing field
  };
  // Where a field is written: its key or list item. Paths are as API servers write them:
  // "spec.containers[0].name", "metadata.annotations[muster.dev/gang]", also with a dot before the
  // last key. If the field is missing, the place is that of the innermost enclosing field. If a key
  // is repeated, the last one counts, as it does for the value.
  Found find(std::string_view path) const;

 private:
  std::shared_ptr<const YAML::Node> root() const;

  const TextPlace begin_;
  const std::shared_ptr<const std::string> source_;
  const size_t first_line_, number_;
  mutable bool parsed_ = false;
  mutable std::shared_ptr<const YAML::Node> root_;  // null: the text cannot be read
};

}  // namespace muster
