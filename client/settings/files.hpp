// Files that the command line reads and writes: manifests, stdin, and small files that are replaced
// atomically.
#pragma once

#include "base/result.hpp"

#include <string>

namespace muster::cli {

// "-" is stdin. invalid: "F: no such file or directory" and the like.
Result<std::string> read_file(const std::string& path);

// The path as shown in messages: "-" becomes stdin.
std::string shown_path(const std::string& path);

// Replaces the file atomically; durable on return.
Status write_file(const std::string& path, const std::string& text);

}  // namespace muster::cli
