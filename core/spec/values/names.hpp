// Names: what Kubernetes accepts as names, labels and annotation keys.
//
// Each check returns the violated rules in Kubernetes' words; empty: the text is valid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

using Reasons = std::vector<std::string>;

Reasons dns_label_errors(std::string_view text);       // "my-name", up to 63 characters
Reasons dns_subdomain_errors(std::string_view text);   // "example.com", up to 253
Reasons qualified_name_errors(std::string_view text);  // "example.com/MyName" or "MyName"
Reasons label_value_errors(std::string_view text);     // up to 63 characters, may be empty
Reasons env_name_errors(std::string_view text);        // printable ASCII without '='
Reasons config_key_errors(std::string_view text);  // a key of a secret or config map: "key.name"
// "example.com/path": a subdomain and a URL path.
Reasons domain_path_errors(std::string_view text);

}  // namespace muster::core
