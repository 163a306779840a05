#include "core/spec/owner.hpp"

#include <charconv>
#include <system_error>
#include <utility>

namespace muster::core {
namespace {

std::optional<uint32_t> read_id(const StringMap& annotations, std::string_view key) {
  const auto it = annotations.find(std::string(key));
  if (it == annotations.end()) return std::nullopt;
  const std::string& text = it->second;
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

}  // namespace

std::optional<Owner> owner_of(const StringMap& annotations) {
  const auto uid = read_id(annotations, kOwnerUidKey), gid = read_id(annotations, kOwnerGidKey);
  if (!uid || !gid) return std::nullopt;
  const auto name = annotations.find(std::string(kOwnerKey));
  return Owner{*uid, *gid, name == annotations.end() ? "" : name->second};
}

std::optional<uint32_t> owner_uid(const StringMap& annotations) {
  return read_id(annotations, kOwnerUidKey);
}

void keep_owner(const std::optional<Owner>& owner, StringMap& annotations, Violations& found) {
  std::pair<std::string_view, std::string> values[] = {
      {kOwnerKey, ""}, {kOwnerUidKey, ""}, {kOwnerGidKey, ""}};
  if (owner) {
    values[0].second = owner->name;
    values[1].second = std::to_string(owner->uid);
    values[2].second = std::to_string(owner->gid);
  }
  for (auto& [key, value] : values) {
    const auto it = annotations.find(std::string(key));
    if (it != annotations.end() && (!owner || it->second != value)) {
      found.forbidden("metadata.annotations[" + std::string(key) + "]",
                      "set by the coordinator to the user who created the job; leave it out");
    } else if (owner) {
      annotations[std::string(key)] = std::move(value);
    }
  }
}

}  // namespace muster::core
