// ListStream: a list, or a page of it, rendered object by object as the client reads it.
//
// It goes job by job and holds the keys of only one job's objects. Each object is rendered as it is
// when it is reached, and objects removed meanwhile are left out: a watch from the list's version
// reports them. So no response is held in memory, however long the list or slow the client. The
// metadata follows the items, since only then is it known where the next page begins.
//
// A list in protobuf begins with its length, so it is held, up to 16 MiB. A longer one is sent as
// JSON, as all clients of Kubernetes' own accept, or refused with the advice to ask for pages.
#pragma once

#include "api/request/exchange.hpp"
#include "api/request/streams.hpp"
#include "api/view/query/list_page.hpp"
#include "api/view/query/selector.hpp"

namespace muster::api {

kj::Promise<void> stream_list(StreamContext& context, Exchange& exchange, const Query& query,
                              ListPage page);

}  // namespace muster::api
