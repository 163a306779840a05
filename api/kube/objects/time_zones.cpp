#include "api/kube/objects/time_zones.hpp"

#include <cctz/time_zone.h>
#include <chrono>

namespace muster::api {
namespace {

core::Zone zone_of(const cctz::time_zone& zone) {
  return [zone](int64_t unix_s) -> int64_t {
    return zone.lookup(std::chrono::system_clock::from_time_t(unix_s)).offset;
  };
}

}  // namespace

std::optional<core::Zone> zone_named(const std::string& name) {
  cctz::time_zone zone;
  if (!cctz::load_time_zone(name, &zone)) return std::nullopt;
  return zone_of(zone);
}

core::Zone local_zone() {
  return zone_of(cctz::local_time_zone());
}

}  // namespace muster::api
