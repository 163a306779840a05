// AccessGate: checks a request and the object that it names against api/access/rules.hpp, and sends
// the response if access is refused.
#pragma once

#include "api/access/rules.hpp"
#include "api/request/backend.hpp"
#include "api/request/exchange.hpp"
#include "api/view/model/view.hpp"
#include "api/view/model/viewer.hpp"

#include <optional>
#include <set>
#include <string>

namespace muster::api {

class AccessGate {
 public:
  AccessGate(const View& view, Backend& backend, const AccessRules& rules)
      : view_(view), backend_(backend), rules_(rules) {}

  Decision judge(const Exchange& exchange) const { return judge(exchange.caller, exchange.wants); }
  // Also for access reviews, whose `wants` are not those of the request itself.
  Decision judge(const Caller& caller, const Attributes& wants) const;

  // The response to a request that is not allowed; nothing if it is.
  std::optional<kj::Promise<void>> refuse(Exchange& exchange) const;

  // A 403 with this reason.
  static kj::Promise<void> forbid(Exchange& exchange, const std::string& reason);

  // Which objects of a collection the caller may see.
  Viewer viewer(const Caller& caller) const;
  // Which namespaces exist for the caller, or whether this one does; absent: all.
  std::optional<std::set<std::string>> namespaces(const Caller& caller,
                                                  const std::string& ns) const;

 private:
  Whose whose(const Caller& caller, const Attributes& wants) const;

  const View& view_;
  Backend& backend_;
  const AccessRules& rules_;
};

}  // namespace muster::api
