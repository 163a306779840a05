// Build info: what this executable was built from, and which formats it reads and speaks.
#pragma once

#include "cli/output/json.hpp"

namespace muster::cli {

// {"version": "0.1.0", "revision": …, "build": …, "compiler": …, "libraries": {…}, "formats": {…},
// "protocols": {…}}
Json build_info();

// What is spoken with agents and keepers, and the format of the keeper's spool. A file of its own:
// the schemas of wire and journal share names.
Json protocols();

}  // namespace muster::cli
