// Time zones by name, from the system's time zone database.
#pragma once

#include "core/cron/schedule.hpp"

#include <optional>
#include <string>

namespace muster::api {

// Nothing: there is no zone of this name. The database is read once for each zone.
std::optional<core::Zone> zone_named(const std::string& name);

// The zone of this machine (TZ, /etc/localtime).
core::Zone local_zone();

}  // namespace muster::api
