// Namespaces: names that keep objects apart.
//
// Every name is accepted and none needs to be created. Lists show `default` and the namespaces that
// have jobs, leases or events.
#pragma once

#include "api/request/access_gate.hpp"
#include "api/request/exchange.hpp"
#include "api/view/view.hpp"

namespace muster::api {

// Whether the path is the collection or one of its names.
bool is_namespaces(const Url& url);
// Where jobs are private, a list has only the namespaces in which the caller has any.
kj::Promise<void> answer_namespaces(Exchange& exchange, const View& view, const AccessGate& gate);

}  // namespace muster::api
