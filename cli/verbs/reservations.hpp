// Reservations: what a Node object says of the times in which it is reserved.
#pragma once

#include "client/terminal/json.hpp"
#include "core/spec/values/window.hpp"

#include <string>
#include <vector>

namespace muster::cli {

std::vector<core::Window> windows_on(const Json& node);

// "ann,@hpc1"; "<none>": it is maintenance.
std::string users_text(const core::Window& window);

}  // namespace muster::cli
