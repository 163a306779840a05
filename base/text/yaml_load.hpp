// The documents of a YAML text, as the library's nodes.
#pragma once

#include <string>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace muster {

// Throws YAML::Exception for malformed text. YAML::LoadAll alone does not return for some of it:
// where no value can begin (", a" or "{}}, a"), it finds empty documents until memory runs out.
std::vector<YAML::Node> load_all_yaml(const std::string& text);

}  // namespace muster
