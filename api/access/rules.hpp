// Rules: the one function that says who may do what. Pure; everything that it does not allow is
// denied.
//
// Each request is judged twice: before its body is read, and again by the object that it names when
// it is about to be changed, because a name may have changed hands meanwhile.
#pragma once

#include "api/access/attributes.hpp"
#include "api/access/caller.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::api {

// Whose the named object is. `nobody`: a collection, an object that has no owner, or no object at
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
  bool private_jobs = false;  // users do not even see names and counts of each other's jobs
};

Decision authorize(const Caller& caller, const Attributes& request, Whose whose,
                   const AccessRules& rules);

// What a caller may do, for people. Of objects that belong to users: the caller's own, unless the
// caller may do everything.
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
