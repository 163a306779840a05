// Target: the object or collection that a request's path names.
#pragma once

#include "api/http/url.hpp"
#include "api/view/model/shown.hpp"

#include <optional>
#include <string>

namespace muster::api {

// A Kubernetes object or collection.
struct Target {
  Kind kind = Kind::job;
  std::string ns;    // empty: all namespaces, or a cluster-wide kind
  std::string name;  // empty: the collection
  std::string sub;   // "log", "exec", "status", "scale", "eviction", "finalize"

  // Whether objects of the kind are created and listed without a namespace.
  bool is_cluster_wide() const {
    const auto kept = kept_kind_of(kind);
    return kept && core::is_cluster_wide(*kept);
  }
  bool is_kept() const { return kind == Kind::event || kept_kind_of(kind).has_value(); }

  static std::optional<Target> of(const Url& url);
};
// The methods that a target supports, as in the Allow header.
std::string allowed(const Target& target);

// A path in the group muster.dev/v1.
struct MusterTarget {
  std::string ns, job;  // empty: not about a job
  std::string pod;      // in that namespace; empty: not about a pod
  std::string what;     // for example "indexes", "tokens", "users/token", "nodes/revocation"
  // Of the user, node, token or coordinator, or an id in the history; may be empty.
  std::string name;

  static std::optional<MusterTarget> of(const Url& url);
};

}  // namespace muster::api
