#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>
#include <utility>

namespace muster::core {
namespace {

constexpr std::string_view kOperator = "operator";

std::optional<uint32_t> read_id(std::string_view text) {
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

std::string_view value_of(const StringMap& annotations, std::string_view key) {
  const auto it = annotations.find(std::string(key));
  return it == annotations.end() ? std::string_view() : it->second;
}

std::optional<std::vector<uint32_t>> read_groups(std::string_view text) {
  std::vector<uint32_t> groups;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const auto gid = read_id(text.substr(0, end));
    if (!gid) return std::nullopt;
    groups.push_back(*gid);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return groups;
}

std::string groups_text(const std::vector<uint32_t>& groups) {
  std::string text;
  for (const uint32_t gid : groups) text += (text.empty() ? "" : ",") + std::to_string(gid);
  return text;
}

}  // namespace

std::optional<Owner> owner_of(const StringMap& annotations) {
  const auto uid = read_id(value_of(annotations, kOwnerUidKey)),
             gid = read_id(value_of(annotations, kOwnerGidKey));
  auto groups = read_groups(value_of(annotations, kOwnerGroupsKey));
  if (!uid || !gid || !groups) return std::nullopt;
  return Owner{*uid,
               *gid,
               std::string(value_of(annotations, kOwnerKey)),
               std::move(*groups),
               std::string(value_of(annotations, kOwnerHomeKey)),
               value_of(annotations, kOwnerRoleKey) == kOperator};
}

std::optional<uint32_t> owner_uid(const StringMap& annotations) {
  return read_id(value_of(annotations, kOwnerUidKey));
}

bool is_users(const StringMap& annotations) {
  return owner_uid(annotations) && value_of(annotations, kOwnerRoleKey) != kOperator;
}

void keep_owner(const std::optional<Owner>& owner, StringMap& annotations, Violations& found) {
  std::pair<std::string_view, std::string> values[std::size(kOwnerKeys)];
  for (size_t i = 0; i < std::size(kOwnerKeys); ++i) values[i].first = kOwnerKeys[i];
  if (owner) {
    values[0].second = owner->name;
    values[1].second = std::to_string(owner->uid);
    values[2].second = std::to_string(owner->gid);
    values[3].second = groups_text(owner->groups);
    values[4].second = owner->home;
    if (owner->privileged) values[5].second = kOperator;
  }
  for (auto& [key, value] : values) {
    const auto it = annotations.find(std::string(key));
    if (it != annotations.end() && (!owner || it->second != value)) {
      found.forbidden("metadata.annotations[" + std::string(key) + "]",
                      "set by the coordinator to the user who created the job; omit it");
    } else if (owner && !value.empty()) {
      annotations[std::string(key)] = std::move(value);
    }
  }
}

}  // namespace muster::core
