#include "core/cluster/nodes/node_rules.hpp"

#include "core/spec/values/names.hpp"

#include <algorithm>

namespace muster::core {

namespace {

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Quotes text from outside and truncates it, since it may be long.
std::string shown(const std::string& text) {
  constexpr size_t kMax = 80;
  return "\"" + (text.size() <= kMax ? text : text.substr(0, kMax) + "...") + "\"";
}

}  // namespace

std::string node_error(const NodeInfo& node) {
  if (Reasons wrong = dns_subdomain_errors(node.name); !wrong.empty())
    return "the node name " + shown(node.name) + " is not valid: " + wrong.front();
  for (const auto& [what, text] :
       {std::pair{"work-dir id", &node.work_dir_id}, std::pair{"boot id", &node.boot_id},
        std::pair{"secret", &node.secret}})
    if (text->size() > kNodeIdMax || !is_printable(*text))
      return std::string("the ") + what + " is not valid: at most " + std::to_string(kNodeIdMax) +
             " printable characters";
  if (node.work_dir_id.empty() || node.boot_id.empty())
    return "the work-dir id or the boot id is empty: a node needs both";
  if (node.address.size() > kNodeAddressMax || !is_printable(node.address))
    return "the address is not valid: at most " + std::to_string(kNodeAddressMax) +
           " printable characters";
  if (node.slots > kNodeSlotsMax)
    return "it has " + std::to_string(node.slots) + " slots; the maximum is " +
           std::to_string(kNodeSlotsMax);
  if (node.labels.size() > kNodeLabelsMax)
    return "it has " + std::to_string(node.labels.size()) + " labels; the maximum is " +
           std::to_string(kNodeLabelsMax);
  for (const auto& [key, value] : node.labels) {
    Reasons wrong = qualified_name_errors(key);
    if (wrong.empty()) wrong = label_value_errors(value);
    if (!wrong.empty())
      return "the label " + shown(key + "=" + value) + " is not valid: " + wrong.front();
  }
  if (node.resources.size() > kNodeResourcesMax)
    return "it has " + std::to_string(node.resources.size()) + " named resources; the maximum is " +
           std::to_string(kNodeResourcesMax);
  for (const auto& [name, count] : node.resources)
    if (Reasons wrong = qualified_name_errors(name); !wrong.empty())
      return "the resource " + shown(name) + " is not valid: " + wrong.front();
  return "";
}

}  // namespace muster::core
