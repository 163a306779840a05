// Selectors: labelSelector and fieldSelector of a list or a watch.
//
// Labels: "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", joined by commas; as in
// Kubernetes, `!=` and `notin` also match objects without the label. Fields: "=", "==", "!=" on the
// few fields of each kind. A selector is judged for each object, so its length and the number of
// its requirements are limited. An unknown field is an error, so that a client does not mistake an
// unfiltered list for a filtered one.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/model/viewer.hpp"
#include "base/result.hpp"

#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

class Selector {
 public:
  static constexpr size_t kBytesMax = 4096, kRulesMax = 64;

  static Result<Selector> labels(std::string_view text);
  static Result<Selector> fields(std::string_view text, Kind kind);

  using Lookup = std::function<std::optional<std::string_view>(std::string_view key)>;
  bool matches(const Lookup& lookup) const;
  // Like matches(), but treats rules on `key` as satisfied.
  bool matches_but(std::string_view key, const Lookup& lookup) const;
  bool empty() const { return rules_.empty(); }
  bool mentions(std::string_view key) const;
  // Whether all rules are on these keys.
  bool only_on(std::initializer_list<std::string_view> keys) const;
  // The only value that matches for this key; nothing if there is no such single value.
  std::optional<std::string_view> only(std::string_view key) const;

 private:
  struct Rule {
    enum class Op { in, not_in, exists, absent };
    std::string key;
    Op op = Op::in;
    std::vector<std::string> values;  // in order, each once
  };
  std::optional<Error> add(Rule rule);
  std::vector<Rule> rules_;
};

// The objects that a request asks for.
struct Query {
  Kind kind = Kind::job;
  std::string ns;  // empty: all
  Selector labels;
  Selector fields;
  Viewer viewer{};  // only what this viewer sees matches
  // The namespaces whose provided config map matches; absent: all.
  std::optional<std::set<std::string>> namespaces{};

  bool matches(const View& view, const Shown& shown) const;
  bool matches_kept(const KeptView& view) const;
  // Whether this job may have matching objects.
  bool wants(const core::Job& job) const;
  bool wants_unloaded(std::string_view name, const UnloadedJob& job) const;
  // Both of the above. The Query must outlive it.
  Wanted wanted() const;
  // Whether an object can start or stop matching during its lifetime.
  bool may_turn() const;
};

std::string_view phase(const core::Pod& pod);  // Pending, Running, Succeeded, Failed

}  // namespace muster::api
