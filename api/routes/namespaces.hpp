// Lists and shows namespaces. Any name can be used without creating it, so they are the objects
// that were created, `default`, and whatever jobs and stored objects are in; a watch (streams.hpp)
// has only the first of these. Also their service accounts: each has `default`, for clients that
// look for it.
#pragma once

#include "api/request/access_gate.hpp"
#include "api/request/exchange.hpp"
#include "api/view/render.hpp"
#include "api/view/view.hpp"

namespace muster::api {

// Whether the path is the collection or one of its names.
bool is_namespaces(const Url& url);
// Where jobs are private, a list has only the namespaces in which the caller has any.
kj::Promise<void> answer_namespaces(Exchange& exchange, const View& view, const AccessGate& gate,
                                    Renderer& renderer);

bool is_service_accounts(const Url& url);
kj::Promise<void> answer_service_accounts(Exchange& exchange, const View& view,
                                          const AccessGate& gate);

}  // namespace muster::api
