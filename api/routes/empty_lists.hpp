// Empty lists: kinds that clients ask for but that never have any objects.
//
// `kubectl cluster-info` lists services. `kubectl drain` before 1.22 needs the group `policy`
// before it evicts, and a group needs a resource.
#pragma once

#include "api/request/exchange.hpp"

namespace muster::api {

bool is_empty_list(const Url& url);
kj::Promise<void> answer_empty_list(Exchange& exchange, uint64_t version);

}  // namespace muster::api
