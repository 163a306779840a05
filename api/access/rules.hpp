// Rules: the one function that decides who may do what. Pure; whatever it does not allow is denied.
//
// Each request is checked twice: before its body is read, and again just before the object that it
// names is changed, because the name may have changed hands in between.
#pragma once

#include "api/access/attributes.hpp"
#include "api/access/caller.hpp"
#include "core/job/facts/record.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// Who owns the named object. `nobody`: a collection, an object that has no owner, or no object at
// all.
enum class Whose : uint8_t { nobody, own, other };

enum class Access : uint8_t {
  denied,
  hidden,   // answered as if the object did not exist
  summary,  // only name, owner and counts are shown
  allowed,
};

struct Decision {
  Access access = Access::denied;
  std::string reason;  // when denied or hidden

  bool ok() const { return access == Access::allowed || access == Access::summary; }
};

struct AccessRules {
  bool private_jobs = false;      // users cannot see even the names and counts of each other's jobs
  int32_t user_priority_max = 0;  // of a user's pods (core/queue/rights.hpp)
};

Decision authorize(const Caller& caller, const Attributes& request, Whose whose,
                   const AccessRules& rules);

// Why the caller, who may change the job, may not change or lift this hold; nothing: they may.
std::optional<std::string> keeps_hold(const Caller& caller, const core::JobHeld& hold);

// What a caller may do, for display. For objects that belong to users, this covers only the
// caller's own, unless the caller may do everything.
struct GrantedRule {
  std::vector<std::string> verbs;
  std::string group, resource;  // "*": any; "jobs/status" for a subresource
};
std::vector<GrantedRule> granted_rules(const Caller& caller);
std::vector<std::string> granted_paths(const Caller& caller);

// `jobs.batch "x" is forbidden: User "alice" cannot delete resource "jobs" in API group "batch" in
// the namespace "default": it belongs to another user`
std::string forbidden_text(const Caller& caller, const Attributes& request,
                           const std::string& reason);

}  // namespace muster::api
