// Build info: what this executable was built from, and which formats and protocols it supports.
#pragma once

#include "client/terminal/json.hpp"

namespace muster::cli {

// {"version": "0.1.0", "revision": …, "build": …, "compiler": …, "libraries": {…}, "formats": {…},
// "protocols": {…}}
Json build_info();

// Versions of the protocols with agents and keepers, and of the keeper's spool. In a separate file
// because the wire and journal schemas share names.
Json protocols();

}  // namespace muster::cli
