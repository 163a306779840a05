#include "cli/verbs/setup/build_info.hpp"
#include "keeper/protocol.hpp"
#include "schema/agent.capnp.h"
#include "schema/standby.capnp.h"

namespace muster::cli {

Json protocols() {
  return {{"agent", wire::PROTOCOL_VERSION},        {"keeper", keeper::kVersion},
          {"keeperOldest", keeper::kOldestVersion}, {"spool", keeper::kSpoolVersion},
          {"standby", wire::STANDBY_PROTOCOL},      {"standbyOldest", wire::STANDBY_OLDEST}};
}

}  // namespace muster::cli
