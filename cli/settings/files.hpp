// Files as the command line meets them: a manifest, stdin, a small file that must be whole or not
// there.
#pragma once

#include "base/result.hpp"

#include <string>

namespace muster::cli {

// "-" is stdin. invalid: "F: no such file or directory" and the like.
Result<std::string> read_file(const std::string& path);

// The path as a message names it: "-" is stdin.
std::string shown_path(const std::string& path);

// Replaces the file as a whole, durable when it returns.
Status write_file(const std::string& path, const std::string& text);

}  // namespace muster::cli
