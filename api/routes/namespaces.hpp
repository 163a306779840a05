// Namespaces: names that keep jobs apart.
//
// Any name is accepted everywhere and none is ever created, so each has always been there. Listed
// are `default` and those in which there is a job.
#pragma once

#include "api/routes/exchange.hpp"
#include "api/view/view.hpp"

namespace muster::api {

// The collection or one of its names.
bool is_namespaces(const Url& url);
kj::Promise<void> answer_namespaces(Exchange& exchange, const View& view);

}  // namespace muster::api
