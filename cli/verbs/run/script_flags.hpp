// Script flags: what run and submit do with a file that is a batch script.
#pragma once

#include "cli/verbs/run/run_options.hpp"
#include "cli/verbs/verb.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::cli {

// Reads a file that may be a script. A script is stored in `o`, and its flags are returned. An
// executable that was typed with its path, for several indexes, stays a command unless it has
// options. `o` shares the life of what the flags are parsed into. `files`: pods can write their
// output to files (--output and --error of submit).
std::function<ReadScript(const std::string& file, const std::vector<TypedFlag>& typed)>
script_reader(std::shared_ptr<RunOptions> o, bool files);

// Whether this is a script, and not a manifest.
bool is_script_file(const std::string& file);

}  // namespace muster::cli
