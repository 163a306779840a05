// Access reviews: `kubectl auth can-i`. Anyone who can reach this API may do everything, so the
// answer is always yes and the request, which newer clients write in protobuf, is not read.
#pragma once

#include "api/routes/exchange.hpp"

namespace muster::api {

bool is_access_review(const Url& url);
kj::Promise<void> answer_access_review(Exchange& exchange);

}  // namespace muster::api
