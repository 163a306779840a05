// The store in etcd, version 3.4 or later, through the HTTP/JSON gateway that every member serves.
//
// A call asks the endpoint that answered last, then each of the others: after a refused connection
// at once, after an endpoint that says nothing when its time is up. It ends after twice
// EtcdOptions::timeout_ms at most, and the next one goes on with the endpoints that this one did
// not reach.
//
// - A change that an endpoint may have got and did not answer is repeated at the next one, which is
//   safe: its guards hold for one of the two only, or both do the same. If the repeated one finds
//   its guards broken, the state says whether the first was made; where it does not, the answer is
//   `unavailable`.
// - A renewal counts only if a linearizable read that follows finds etcd in the same term: a member
//   that was the leader of etcd may answer renewals until it learns that it no longer is, while its
//   successor counts the lease down. If the term is the same, the leader that renewed was still the
//   leader when the read began, and one of a later term counts all leases from its own election.
//   What remains: where etcd lacks the fix of its issue 15247 (3.4.23 does), a former leader that
//   was stuck may end leases that its successor has renewed. Nothing but reads may rest on a lease.
// - All endpoints must belong to the etcd cluster that answered first. An answer of another one is
//   an error, not an answer.
#pragma once

#include "standby/store/etcd_options.hpp"
#include "standby/store/store.hpp"

#include <kj/async-io.h>

namespace muster::standby {

// Connects when it is first used. Network and timer must outlive the store. `invalid`: a file with
// a certificate or key can't be read, or a URL of the options is malformed.
Result<kj::Own<Store>> etcd_store(kj::Network& network, kj::Timer& timer, EtcdOptions options);

}  // namespace muster::standby
