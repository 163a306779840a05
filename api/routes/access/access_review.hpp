// Access reviews: who the caller is (`kubectl auth whoami`) and what the caller may do (`kubectl
// auth can-i`). The answers come from the same function that decides on requests.
#pragma once

#include "api/request/access_gate.hpp"
#include "api/request/exchange.hpp"

namespace muster::api {

bool is_access_review(const Url& url);
kj::Promise<void> answer_access_review(Exchange& exchange, const AccessGate& gate);

}  // namespace muster::api
