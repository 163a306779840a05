// Log: one line a record, to stderr. The only file that includes spdlog's logger; format strings
// are fmt's.
//
// info for a job's or node's life, debug a pod's, warn for degraded, error when a person is needed.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace muster::log {

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

// Sets the level (trace, debug, info, warn, error, off) and the format; `program` leads each line.
void setup(const std::string& program, const std::string& level);

}  // namespace muster::log
