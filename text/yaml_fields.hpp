// The places of a document's fields in its text, for messages about them.
#pragma once

#include "text/yaml.hpp"

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
  // Parses the document again, when the first field is looked for.
  explicit YamlFields(const YamlDocument& document);

  struct Found {
    TextPlace place;
    bool exact = false;  // false: of what encloses it
  };
  // Where a field is written: its key, or the item of a list. A path is what API servers write:
  // "spec.containers[0].name", "metadata.annotations[muster.dev/gang]", also with a dot before the
  // last key. If the field is not there, the place is that of the innermost field around it. Of a
  // repeated key, the last one counts, as for its value.
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
