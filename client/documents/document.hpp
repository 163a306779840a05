// Document: an object from a file, as sent to the API.
#pragma once

#include "base/text/yaml_fields.hpp"

#include <memory>
#include <string>

namespace muster::cli {

struct Document {
  // As sent to the API, including repeated keys, so that the API can report them.
  std::string json;
  std::string kind, name, ns;
  std::string file{};  // as shown
  // The places of its fields. An item of a list shares those of the list, where it is `within`
  // ("items[3]").
  std::shared_ptr<const YamlFields> fields{};
  std::string within{};
};

}  // namespace muster::cli
