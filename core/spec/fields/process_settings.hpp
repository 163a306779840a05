// ProcessSettings: what a job's processes start with that a login shell would set.
//
//   muster.dev/nice      0 to 19, added to the niceness that pods have on their node
//   muster.dev/umask     octal, 0 to 0777
//   muster.dev/ulimits   soft limits, such as "nofile=1024 stack=64M", of kSoftLimits, written as
//                        in core/spec/values/rlimits.hpp; a node lowers them to its hard limits
//   muster.dev/stdout    the file that it writes to, as an absolute OutputPattern
//   muster.dev/stderr    likewise; absent: what stdout has, if that is a file; `stdout`: what
//   stdout
//                        has, also if that is the pod's log
//
// Those that are absent are the node's, and the files the pod's logs.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/output_pattern.hpp"
#include "core/spec/values/violations.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

constexpr std::string_view kNiceKey = "muster.dev/nice";
constexpr std::string_view kUmaskKey = "muster.dev/umask";
constexpr std::string_view kUlimitsKey = "muster.dev/ulimits";
constexpr std::string_view kStdoutKey = "muster.dev/stdout";
constexpr std::string_view kStderrKey = "muster.dev/stderr";
constexpr std::string_view kWithStdout = "stdout";  // as the value of kStderrKey
constexpr int32_t kNiceMax = 19;

// Those of a user's shell, by the names of limits.conf(5).
constexpr std::array<std::string_view, 9> kSoftLimits = {
    "as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"};

struct ProcessSettings {
  std::optional<int32_t> nice{};
  std::optional<uint32_t> umask{};
  std::map<std::string, uint64_t> soft_limits{};
  std::string out{}, err{};  // patterns or, once for_pod() has been called, files; empty: the log
  bool append = false;       // to the files, from the start
  bool joined = false;       // stderr goes where stdout goes; `err` is empty
  bool files() const { return !out.empty() || !err.empty(); }
  bool operator==(const ProcessSettings&) const = default;
};

// With files in place of patterns. A pod's first attempt, or each if the file is its own, begins
// its file anew.
ProcessSettings for_pod(const ProcessSettings& settings, const OutputPod& pod);

// Malformed ones are ignored.
ProcessSettings read_process_settings(const StringMap& annotations);
void write_process_settings(const ProcessSettings& settings, StringMap& annotations);
void validate_process_settings(const StringMap& annotations, const JobSpec& spec,
                               Violations& found);

}  // namespace muster::core
