// Document: an object in a file, as it is sent to the API.
#pragma once

#include "text/yaml_fields.hpp"

#include <memory>
#include <string>

namespace muster::cli {

struct Document {
  // As sent to the API; repeated keys are still there, so that the API can name them.
  std::string json;
  std::string kind, name, ns;
  std::string file{};  // as shown
  // The places of its fields; of an item of a list, those of the list, in which it is `within`
  // ("items[3]").
  std::shared_ptr<const YamlFields> fields{};
  std::string within{};
};

}  // namespace muster::cli
