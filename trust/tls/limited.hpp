// Limited address: for those who can turn to another one, and do not wait long for a machine that
// is gone.
#pragma once

#include "base/clock.hpp"

#include <kj/async-io.h>
#include <kj/timer.h>

namespace muster::tls {

inline constexpr Millis kConnectMaxMs = 2'000;
inline constexpr Millis kGoneMaxMs = 3'000;

// connect() throws if it takes longer than `limit_ms`. A connection over TCP breaks if the other
// machine, not its process, is silent for kGoneMaxMs. `failed` (null: not wanted) is set when
// connect() fails for whatever reason, so that nothing was sent; it and `timer` outlive the
// address.
kj::Own<kj::NetworkAddress> limited(kj::Own<kj::NetworkAddress> address, kj::Timer& timer,
                                    Millis limit_ms = kConnectMaxMs, bool* failed = nullptr);

}  // namespace muster::tls
