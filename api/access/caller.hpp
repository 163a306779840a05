// Caller: who sent a request, and their role.
#pragma once

#include "core/spec/fields/owner.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// rules.cpp defines what each may do. `none` is a user whom no option admits.
enum class Role : uint8_t { none, metrics, user, operators, admin };
const char* name(Role role);

// The Unix groups that give their members each role. The coordinator's own user and root are
// admins.
struct RoleGroups {
  std::vector<std::string> users, operators, admins, metrics;  // "*" in users: everyone

  // Whether users have roles at all.
  bool any() const {
    return !(users.empty() && operators.empty() && admins.empty() && metrics.empty());
  }
};

struct Caller {
  Role role = Role::none;
  core::Owner who;                  // uid, gid and name
  std::vector<std::string> groups;  // the names of the user's Unix groups
  // Whether the coordinator serves several users. If not, its jobs have no owner: every caller is
  // its own user or root and may do everything.
  bool distinguished = false;

  // Whether the caller may see and change everyone's objects.
  bool unlimited() const { return role == Role::operators || role == Role::admin; }
  // The caller's name as others see it. Without roles, all callers have the same.
  std::string called() const {
    if (!who.name.empty()) return who.name;
    return distinguished ? "uid " + std::to_string(who.uid) : "local";
  }
  // The owner of what the caller creates.
  std::optional<core::Owner> owner() const {
    if (!distinguished) return std::nullopt;
    core::Owner owner = who;
    owner.privileged = unlimited();
    return owner;
  }
};

}  // namespace muster::api
