// Owner: the user that a job belongs to, where a coordinator serves several users.
//
// The coordinator takes the owner from the connection that created the job and stores it in
// annotations. No request can set or change them, so they identify the job's creator for as long as
// it exists. A job without them was created on a coordinator that serves one user, and belongs to
// that user.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

constexpr std::string_view kOwnerKey = "muster.dev/owner";  // user name, for people
constexpr std::string_view kOwnerUidKey = "muster.dev/owner-uid";
constexpr std::string_view kOwnerGidKey = "muster.dev/owner-gid";
constexpr std::string_view kOwnerGroupsKey = "muster.dev/owner-groups";  // "100,2001"
constexpr std::string_view kOwnerHomeKey = "muster.dev/owner-home";
constexpr std::string_view kOwnerRoleKey = "muster.dev/owner-role";  // "operator", or absent
constexpr std::string_view kOwnerKeys[] = {kOwnerKey,       kOwnerUidKey,  kOwnerGidKey,
                                           kOwnerGroupsKey, kOwnerHomeKey, kOwnerRoleKey};

struct Owner {
  uint32_t uid = 0;
  uint32_t gid = 0;  // the user's primary group
  std::string name;
  std::vector<uint32_t> groups{};  // all of the user's groups when the job was created
  std::string home{};              // absolute, or empty
  bool privileged = false;         // was an operator or an admin when the job was created
  bool operator==(const Owner&) const = default;
};

// nullopt if the uid or the gid is missing or malformed.
std::optional<Owner> owner_of(const StringMap& annotations);
// Just the uid, which is read for each object of a list.
std::optional<uint32_t> owner_uid(const StringMap& annotations);
// Whether the job belongs to a user without an operator's rights.
bool is_users(const StringMap& annotations);

// Sets this owner, or none, in `annotations` as written by a client. A client may repeat what is
// stored, as it does when it sends back an object that it has read; any other value is refused.
void keep_owner(const std::optional<Owner>& owner, StringMap& annotations, Violations& found);

}  // namespace muster::core
