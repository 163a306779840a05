// Usage: what attempts have used, as text, beside what they requested (`usage` of an attempt, and
// JobUsage; docs/api.md). Pure.
#pragma once

#include "client/terminal/json.hpp"

#include <string>

namespace muster::cli {

// What one pod of a job requests; 0: nothing.
struct Requested {
  double cpus = 0, memory_bytes = 0;
};

// The requests of a job's containers, or their limits.
Requested requested_by(const Json& job);

// CPU time and, if CPUs were requested, its share of theirs in these seconds: "1.204s (60%)".
// "-": not known.
std::string cpu_text(const Json& usage, double ran_seconds, const Requested& requested);

// CPU time of one mode, "userSeconds" or "systemSeconds": "1.204s". "-": not known.
std::string cpu_mode_text(const Json& usage, const char* mode);
// CPU time with its share, and the modes apart: "1.204s (60%), user 1.1s, system 0.104s".
std::string cpu_parts_text(const Json& usage, double ran_seconds, const Requested& requested);

// How long an attempt was there before it started: "2.100s". Its backoff is over by then, so it
// waited for a slot. "-" if it never started.
std::string waited(const Json& attempt);

// The peak and, if memory was requested, its share: "105Mi (2%)". "-": not known.
std::string memory_text(const Json& usage, const Requested& requested);

}  // namespace muster::cli
