#include "cli/verbs/setup/build_info.hpp"

#include "base/version.hpp"
#include "build_info.inc"
#include "schema/journal.capnp.h"

#include <string>

namespace muster::cli {
namespace {

// "CAF 0.17.6, RocksDB 7.8.3" -> {"CAF": "0.17.6", "RocksDB": "7.8.3"}.
Json libraries() {
  Json out = Json::object();
  std::string rest = MUSTER_LIBRARIES ", ";
  for (size_t end; (end = rest.find(", ")) != std::string::npos; rest.erase(0, end + 2)) {
    const std::string one = rest.substr(0, end);
    const size_t space = one.rfind(' ');
    out[one.substr(0, space)] = one.substr(space + 1);
  }
  return out;
}

}  // namespace

Json build_info() {
  return {{"version", kVersion},
          {"revision", MUSTER_REVISION},
          {"build", MUSTER_BUILD_TYPE},
          {"compiler", MUSTER_COMPILER},
          {"libraries", libraries()},
          {"formats",
           {{"journal", wire::JOURNAL_FORMAT},
            {"records", wire::RECORDS_VERSION},
            {"snapshot", wire::SNAPSHOT_VERSION},
            {"attempts", wire::ATTEMPTS_VERSION},
            {"node", wire::NODE_VERSION}}},
          {"protocols", protocols()}};
}

}  // namespace muster::cli
