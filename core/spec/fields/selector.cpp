#include "core/spec/fields/selector.hpp"

#include "core/spec/values/names.hpp"

#include <algorithm>

namespace muster::core {
namespace {

bool matches(const SelectorRequirement& wanted, const StringMap& labels) {
  auto label = labels.find(wanted.key);
  bool present = label != labels.end();
  bool listed = present && std::find(wanted.values.begin(), wanted.values.end(), label->second) !=
                               wanted.values.end();
  if (wanted.op == "In") return listed;
  if (wanted.op == "NotIn") return !listed;
  if (wanted.op == "Exists") return present;
  if (wanted.op == "DoesNotExist") return !present;
  return false;
}

void validate_requirement(const std::string& path, const SelectorRequirement& wanted,
                          Violations& found) {
  if (wanted.op == "In" || wanted.op == "NotIn") {
    if (wanted.values.empty())
      found.required(path + ".values", "must be specified when `operator` is 'In' or 'NotIn'");
  } else if (wanted.op == "Exists" || wanted.op == "DoesNotExist") {
    if (!wanted.values.empty())
      found.forbidden(path + ".values",
                      "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  } else {
    found.invalid(path + ".operator", wanted.op, "not a valid selector operator");
  }
  for (std::string& reason : qualified_name_errors(wanted.key))
    found.invalid(path + ".key", wanted.key, std::move(reason));
  for (size_t i = 0; i < wanted.values.size(); ++i)
    for (std::string& reason : label_value_errors(wanted.values[i]))
      found.invalid(path + ".values[" + std::to_string(i) + "]", wanted.values[i],
                    std::move(reason));
}

}  // namespace

bool matches(const LabelSelector& selector, const StringMap& labels) {
  for (const auto& [key, value] : selector.match_labels) {
    auto label = labels.find(key);
    if (label == labels.end() || label->second != value) return false;
  }
  return std::all_of(selector.match_expressions.begin(), selector.match_expressions.end(),
                     [&labels](const SelectorRequirement& r) { return matches(r, labels); });
}

void validate_labels(const std::string& path, const StringMap& labels, Violations& found) {
  for (const auto& [key, value] : labels) {
    for (std::string& reason : qualified_name_errors(key))
      found.invalid(path, key, std::move(reason));
    for (std::string& reason : label_value_errors(value))
      found.invalid(path, value, std::move(reason));
  }
}

void validate_annotation_map(const std::string& path, const StringMap& annotations,
                             Violations& found) {
  constexpr size_t kBytesMax = 256 * 1024;
  size_t bytes = 0;
  for (const auto& [key, value] : annotations) {
    bytes += key.size() + value.size();
    for (std::string& reason : qualified_name_errors(key))
      found.invalid(path, key, std::move(reason));
  }
  if (bytes > kBytesMax) found.too_long(path, kBytesMax);
}

void validate_selector(const std::string& path, const LabelSelector& selector, Violations& found) {
  validate_labels(path + ".matchLabels", selector.match_labels, found);
  for (size_t i = 0; i < selector.match_expressions.size(); ++i)
    validate_requirement(path + ".matchExpressions[" + std::to_string(i) + "]",
                         selector.match_expressions[i], found);
}

}  // namespace muster::core
