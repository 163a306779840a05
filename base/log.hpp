// Log: one line per record, to stderr. The only file that includes spdlog's logger; format strings
// are fmt's.
//
// Levels: info for the life of a job or node, debug for a pod, warn for degraded service, error
// when a person is needed.
#pragma once

#include "base/lines/log_format.hpp"

#include <spdlog/spdlog.h>

#include <string>

namespace muster::log {

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

// Sets the level (trace, debug, info, warn, error, off) and the format; each line names `program`.
void setup(const std::string& program, const std::string& level);

// The same for a process that serves: from now on, logging never waits for whoever reads stderr
// (base/lines/stderr_lines.hpp). A line that starts like a warning says how many were dropped.
void setup_queued(const std::string& program, const std::string& level,
                  Format format = Format::text);

// For an error that ends the process, whatever the level: writes `text`, lines as for a terminal
// that end with a newline, or an object with it. Queued like a log line.
void say_error(std::string text);

}  // namespace muster::log
