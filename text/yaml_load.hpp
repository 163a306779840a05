// The documents of a YAML text, as the library's nodes.
#pragma once

#include <string>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace muster {

// Throws YAML::Exception for malformed text. YAML::LoadAll alone does not end for some of it: where
// nothing that can begin a value follows (", a", or "{}}, a"), it finds empty documents until the
// memory is used up.
std::vector<YAML::Node> load_all_yaml(const std::string& text);

}  // namespace muster
