// What `muster coordinator` may be told, by flags or by a file of the same words: `data-dir:
// /var/lib/muster`.
//
// A flag wins over the file, the file over the default. An unknown key is an error, with the
// nearest known one.
#pragma once

#include "base/result.hpp"
#include "cli/options.hpp"

#include <map>
#include <string>
#include <vector>

namespace muster::cli {

// Flag without dashes -> value as written ("true" for --insecure).
using Words = std::map<std::string, std::string>;

const std::vector<std::string>& coordinator_words();

// The words of a --config file.
Result<Words> read_config(const std::string& path);
Result<Words> parse_config(const std::string& yaml, const std::string& path);

// `flags` over `file`.
Result<CoordinatorOptions> coordinator_options(const Words& flags, const Words& file);

}  // namespace muster::cli
