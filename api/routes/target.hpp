// What the path of a request names.
#pragma once

#include "api/http/url.hpp"
#include "api/view/shown.hpp"

#include <optional>
#include <string>

namespace muster::api {

// One of Kubernetes' objects or collections.
struct Target {
  Kind kind = Kind::job;
  std::string ns;    // empty: all namespaces, or a kind without
  std::string name;  // empty: the collection
  std::string sub;   // "log", "status", "scale", "eviction"

  bool is_kept() const { return kind == Kind::lease || kind == Kind::event; }

  static std::optional<Target> of(const Url& url);
};
// The methods that a target takes, as the header Allow lists them.
std::string allowed(const Target& target);

// Something of the group muster.dev/v1, beyond Kubernetes' own objects.
struct MusterTarget {
  std::string ns, job;  // empty: of no job
  std::string what;     // the last word of the path: "indexes"

  static std::optional<MusterTarget> of(const Url& url);
};

}  // namespace muster::api
