#include "core/spec/fields/affinity.hpp"

#include "core/spec/values/names.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

namespace muster::core {
namespace {

constexpr const char* kNameField = "metadata.name";
constexpr int32_t kWeightMax = 100;

std::optional<int64_t> whole(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// `value`: null if there is none.
bool meets(const SelectorRequirement& wanted, const std::string* value) {
  const auto listed = [&] {
    return value != nullptr &&
           std::find(wanted.values.begin(), wanted.values.end(), *value) != wanted.values.end();
  };
  if (wanted.op == "In") return listed();
  if (wanted.op == "NotIn") return !listed();
  if (wanted.op == "Exists") return value != nullptr;
  if (wanted.op == "DoesNotExist") return value == nullptr;
  if (value == nullptr || wanted.values.size() != 1) return false;
  const auto has = whole(*value), bound = whole(wanted.values.front());
  if (!has || !bound) return false;
  return wanted.op == "Gt" ? *has > *bound : wanted.op == "Lt" && *has < *bound;
}

// A term without requirements matches no node.
bool matches(const NodeTerm& term, const std::string& node, const StringMap& labels) {
  if (term.labels.empty() && term.fields.empty()) return false;
  return std::all_of(term.labels.begin(), term.labels.end(),
                     [&labels](const SelectorRequirement& wanted) {
                       const auto label = labels.find(wanted.key);
                       return meets(wanted, label == labels.end() ? nullptr : &label->second);
                     }) &&
         std::all_of(term.fields.begin(), term.fields.end(),
                     [&node](const SelectorRequirement& wanted) {
                       return wanted.key == kNameField && meets(wanted, &node);
                     });
}

void validate_label_requirement(const std::string& path, const SelectorRequirement& wanted,
                                Violations& found) {
  if (wanted.op == "In" || wanted.op == "NotIn") {
    if (wanted.values.empty())
      found.required(path + ".values", "must be specified when `operator` is 'In' or 'NotIn'");
  } else if (wanted.op == "Exists" || wanted.op == "DoesNotExist") {
    if (!wanted.values.empty())
      found.forbidden(path + ".values",
                      "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  } else if (wanted.op == "Gt" || wanted.op == "Lt") {
    if (wanted.values.size() != 1)
      found.required(path + ".values",
                     "must be specified single value when `operator` is 'Lt' or 'Gt'");
    else if (!whole(wanted.values.front()))
      found.invalid(path + ".values[0]", wanted.values.front(),
                    "must be an integer when `operator` is 'Lt' or 'Gt'");
  } else {
    found.invalid(path + ".operator", wanted.op, "not a valid selector operator");
  }
  for (std::string& reason : qualified_name_errors(wanted.key))
    found.invalid(path + ".key", wanted.key, std::move(reason));
}

void validate_field_requirement(const std::string& path, const SelectorRequirement& wanted,
                                Violations& found) {
  if (wanted.op != "In" && wanted.op != "NotIn")
    found.invalid(path + ".operator", wanted.op, "not a valid selector operator");
  else if (wanted.values.size() != 1)
    found.required(path + ".values",
                   "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                   "selector");
  if (wanted.key != kNameField)
    found.invalid(path + ".key", wanted.key, "not a valid field selector key");
  for (size_t i = 0; i < wanted.values.size(); ++i)
    for (std::string& reason : dns_subdomain_errors(wanted.values[i]))
      found.invalid(item(path + ".values", i), wanted.values[i], std::move(reason));
}

void validate_term(const std::string& path, const NodeTerm& term, Violations& found) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    validate_label_requirement(item(path + ".matchExpressions", i), term.labels[i], found);
  for (size_t i = 0; i < term.fields.size(); ++i)
    validate_field_requirement(item(path + ".matchFields", i), term.fields[i], found);
}

}  // namespace

bool is_required(const NodeAffinity& affinity, const std::string& node, const StringMap& labels) {
  return !affinity.required ||
         std::any_of(affinity.required->begin(), affinity.required->end(),
                     [&](const NodeTerm& term) { return matches(term, node, labels); });
}

int64_t preference(const NodeAffinity& affinity, const std::string& node, const StringMap& labels) {
  int64_t sum = 0;
  for (const PreferredNodes& one : affinity.preferred)
    if (matches(one.nodes, node, labels)) sum += one.weight;
  return sum;
}

void validate_node_affinity(const std::string& path, const NodeAffinity& affinity,
                            Violations& found) {
  if (affinity.required) {
    const std::string at =
        path + ".requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    if (affinity.required->empty()) found.required(at, "must have at least one node selector term");
    for (size_t i = 0; i < affinity.required->size(); ++i)
      validate_term(item(at, i), (*affinity.required)[i], found);
  }
  const std::string preferred = path + ".preferredDuringSchedulingIgnoredDuringExecution";
  for (size_t i = 0; i < affinity.preferred.size(); ++i) {
    const std::string at = item(preferred, i);
    if (affinity.preferred[i].weight <= 0 || affinity.preferred[i].weight > kWeightMax)
      found.invalid(at + ".weight", affinity.preferred[i].weight, "must be in the range 1-100");
    validate_term(at + ".preference", affinity.preferred[i].nodes, found);
  }
}

}  // namespace muster::core
