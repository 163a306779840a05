#include "cli/verbs/setup/build_info.hpp"
#include "keeper/protocol.hpp"
#include "schema/agent.capnp.h"

namespace muster::cli {

Json protocols() {
  return {{"agent", wire::PROTOCOL_VERSION},
          {"keeper", keeper::kVersion},
          {"keeperOldest", keeper::kOldestVersion},
          {"spool", keeper::kSpoolVersion}};
}

}  // namespace muster::cli
