// EmptyLists: kinds that clients look for and of which there is never one here.
//
// `kubectl cluster-info` asks for services, and `kubectl drain` of before 1.22 wants the group
// `policy` before it evicts, which has to have a resource.
#pragma once

#include "api/routes/exchange.hpp"

namespace muster::api {

bool is_empty_list(const Url& url);
kj::Promise<void> answer_empty_list(Exchange& exchange, uint64_t version);

}  // namespace muster::api
