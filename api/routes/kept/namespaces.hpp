// Lists and shows namespaces: those that were created, `default`, and, since any name can be used
// without creating it, all that have jobs or stored objects. A watch (streams.hpp) has only those
// that were created.
#pragma once

#include "api/request/access_gate.hpp"
#include "api/request/exchange.hpp"
#include "api/view/model/view.hpp"
#include "api/view/render/render.hpp"

namespace muster::api {

// Whether the path is the collection, one of its names, or the status of one.
bool is_namespaces(const Url& url);
// Only namespaces that exist for the caller (seen_namespaces.hpp).
kj::Promise<void> answer_namespaces(Exchange& exchange, const View& view, const AccessGate& gate,
                                    Renderer& renderer);

}  // namespace muster::api
