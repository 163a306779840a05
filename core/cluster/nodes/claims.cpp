#include "core/cluster/nodes/claims.hpp"

#include "core/cluster/nodes/node_rules.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/volumes.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace muster::core {
namespace {

// With its stars replaced, a pattern must be a label.
std::string pattern_error(const std::string& pattern) {
  std::string label = pattern;
  std::replace(label.begin(), label.end(), '*', 'x');
  const size_t equals = label.find('=');
  Reasons wrong = qualified_name_errors(label.substr(0, equals));
  if (wrong.empty() && equals != label.npos) wrong = label_value_errors(label.substr(equals + 1));
  if (wrong.empty()) return "";
  return "labels: \"" + pattern +
         "\" is not KEY=VALUE or KEY, in which * stands for anything: " + wrong.front();
}

// Labels by which an agent tells what it is able to do, and those that attract nothing.
bool is_of_agents(const std::string& key) {
  return key == kHollowKey || key == kVolumesLabel || key.starts_with(kClaimedPrefix);
}

bool allows(const NodeClaims& claims, const std::string& key, const std::string& value) {
  if (is_of_agents(key)) return true;
  return std::any_of(claims.labels.begin(), claims.labels.end(), [&](const std::string& pattern) {
    const size_t equals = pattern.find('=');
    return matches(std::string_view(pattern).substr(0, equals), key) &&
           (equals == pattern.npos || matches(std::string_view(pattern).substr(equals + 1), value));
  });
}

// The key under which something is shown that a node may not claim; nothing if it is too long.
std::optional<std::string> claimed_key(std::string key) {
  std::replace(key.begin(), key.end(), '/', '.');
  key.insert(0, kClaimedPrefix);
  return qualified_name_errors(key).empty() ? std::optional(std::move(key)) : std::nullopt;
}

void add(std::string& beyond, const std::string& what) {
  beyond += (beyond.empty() ? "" : ", ") + what;
}

}  // namespace

std::string claims_error(const NodeClaims& claims) {
  if (claims.labels.size() > kClaimPatternsMax)
    return "labels: must be at most " + std::to_string(kClaimPatternsMax) + " patterns";
  for (const std::string& pattern : claims.labels)
    if (std::string wrong = pattern_error(pattern); !wrong.empty()) return wrong;
  if (claims.slots_max < 1 || claims.slots_max > kNodeSlotsMax)
    return "slotsMax: must be 1 to " + std::to_string(kNodeSlotsMax);
  if (claims.resources_max.size() > kNodeResourcesMax)
    return "resources: must be at most " + std::to_string(kNodeResourcesMax);
  for (const auto& [name, count] : claims.resources_max) {
    if (Reasons wrong = qualified_name_errors(name); !wrong.empty())
      return "resources: the name \"" + name + "\" is not valid: " + wrong.front();
    if (count < 0 || count > INT32_MAX)
      return "resources: " + name + ": must be 0 to " + std::to_string(INT32_MAX);
  }
  return "";
}

bool matches(std::string_view pattern, std::string_view text) {
  // On a mismatch, the last star takes one character more.
  size_t p = 0, t = 0, star = pattern.npos, after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++after;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

NodeClaims claims_of(const Offer& offer) {
  NodeClaims claims{.labels = {}, .slots_max = std::max(offer.slots, 1u), .resources_max = {}};
  for (const auto& [key, value] : offer.labels)
    if (!is_of_agents(key)) claims.labels.push_back(key + "=" + value);
  for (const auto& [name, count] : offer.resources)
    if (!name.starts_with(kClaimedPrefix)) claims.resources_max[name] = count;
  return claims;
}

std::string hold(Offer& offer, const NodeClaims& claims) {
  std::string beyond;
  if (offer.slots > claims.slots_max) {
    add(beyond, std::to_string(offer.slots) + " slots");
    offer.slots = claims.slots_max;
  }
  StringMap labels;
  for (auto& [key, value] : offer.labels) {
    if (allows(claims, key, value)) {
      labels[key] = value;
      continue;
    }
    add(beyond, "the label " + key + "=" + value);
    if (auto shown = claimed_key(key)) labels[*shown] = value;
  }
  if (!claims.pool.empty()) labels[kPoolLabel] = claims.pool;
  offer.labels = std::move(labels);
  std::map<std::string, int64_t> resources;
  for (const auto& [name, count] : offer.resources) {
    const auto found = claims.resources_max.find(name);
    const int64_t allowed = found == claims.resources_max.end() ? 0 : found->second;
    if (name.starts_with(kClaimedPrefix) || count <= allowed) {
      resources[name] = count;
      continue;
    }
    add(beyond, std::to_string(count) + " of " + name);
    if (allowed > 0) resources[name] = allowed;
    if (auto shown = claimed_key(name)) resources[*shown] = count - allowed;
  }
  offer.resources = std::move(resources);
  return beyond;
}

}  // namespace muster::core
