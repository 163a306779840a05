// Credential: what munge's daemon on this machine makes and verifies: a text that proves to any
// machine with the same munge key which user made it.
//
// libmunge is loaded when it is first used, so that commands that do without it start no later and
// run where it is not installed. The calls block: libmunge waits up to 10 s for its daemon.
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

// unavailable: libmunge cannot be loaded; says why.
Status load();

// Makes a credential that only processes of user `reader` can decode. `socket`: of the daemon;
// empty: where libmunge expects it. unavailable: there is no daemon, or it does not answer.
Result<std::string> encode(const std::string& socket, uid_t reader, const std::string& payload);

// Verifies a credential. invalid: munge refuses it; says why. unavailable: as above.
Result<Decoded> decode(const std::string& socket, const std::string& credential);

}  // namespace muster::munge
