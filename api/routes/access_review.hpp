// AccessReview: `kubectl auth can-i`. Whoever reaches this API may do everything, so the answer to
// each question is yes, without a look at the question (which newer clients write in protobuf).
#pragma once

#include "api/routes/exchange.hpp"

namespace muster::api {

bool is_access_review(const Url& url);
kj::Promise<void> answer_access_review(Exchange& exchange);

}  // namespace muster::api
