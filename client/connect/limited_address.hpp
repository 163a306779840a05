// Limited address: one that must connect within a time, for clients that can turn to another.
#pragma once

#include "base/clock.hpp"

#include <kj/async-io.h>
#include <kj/timer.h>

namespace muster::cli {

// connect() throws if it takes longer than `limit_ms`. `failed` is set when it fails for whatever
// reason, so that nothing was sent; it and `timer` outlive the address.
kj::Own<kj::NetworkAddress> limited(kj::Own<kj::NetworkAddress> address, kj::Timer& timer,
                                    Millis limit_ms, bool& failed);

}  // namespace muster::cli
