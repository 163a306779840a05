// ListStream: a list, or a page of it, rendered object by object as the client takes it.
//
// It goes job by job and keeps the names of one job's objects only; each object is rendered when
// its turn comes, as it is then, and what has gone meanwhile is left out: a watch from the list's
// version tells of it. So the answer never stands in memory, however long the list and however
// slow the client. Hence the metadata stands behind the items: what comes next is known at the end.
#pragma once

#include "api/routes/exchange.hpp"
#include "api/routes/streams.hpp"
#include "api/view/list_page.hpp"
#include "api/view/selector.hpp"

namespace muster::api {

kj::Promise<void> stream_list(StreamContext& context, Exchange& exchange, const Query& query,
                              ListPage page);

}  // namespace muster::api
