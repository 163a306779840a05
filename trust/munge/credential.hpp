// Credential: a text, made and verified by the local munge daemon, that proves to any machine with
// the same munge key which user made it.
//
// libmunge is loaded on first use, so commands that do not need it start no slower and run where it
// is not installed. Calls block: libmunge waits up to 10 s for its daemon.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <string>
#include <sys/types.h>

namespace muster::munge {

struct Decoded {
  uid_t uid = 0;  // of the process that made it
  std::string payload;
  Millis made_ms = 0;  // by the clock of the machine that made it, in whole seconds
  Millis life_ms = 0;
};

// unavailable: libmunge cannot be loaded; the message says why.
Status load();

// Makes a credential that only processes of user `reader` can decode. `socket`: the daemon's;
// empty: libmunge's default. unavailable: there is no daemon, or it does not answer.
Result<std::string> encode(const std::string& socket, uid_t reader, const std::string& payload);

// Verifies a credential. invalid: munge refuses it; the message says why. unavailable: as above.
Result<Decoded> decode(const std::string& socket, const std::string& credential);

}  // namespace muster::munge
