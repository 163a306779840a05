// ProcessSettings: what a job's processes start with that a login shell would set.
//
//   muster.dev/nice      0 to 19, added to the niceness that pods have on their node
//   muster.dev/umask     octal, 0 to 0777
//   muster.dev/ulimits   soft limits, such as "nofile=1024 stack=64M", of kSoftLimits, each
//                        `unlimited` or a number, with K, M, G or T (1K is 1024), in the unit of
//                        setrlimit(2); a node lowers them to its hard limits
//
// Those that are absent are the node's.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace muster::core {

constexpr std::string_view kNiceKey = "muster.dev/nice";
constexpr std::string_view kUmaskKey = "muster.dev/umask";
constexpr std::string_view kUlimitsKey = "muster.dev/ulimits";
constexpr int32_t kNiceMax = 19;
constexpr uint64_t kUnlimited = UINT64_MAX;
constexpr std::string_view kLimitUnits = "KMGT";  // powers of 1024

// Those of a user's shell, by the names of limits.conf(5).
constexpr std::array<std::string_view, 9> kSoftLimits = {
    "as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"};
constexpr uint64_t kFewestFiles = 64;  // nofile: what a process opens before its exec, and more

struct ProcessSettings {
  std::optional<int32_t> nice{};
  std::optional<uint32_t> umask{};
  std::map<std::string, uint64_t> soft_limits{};
  bool operator==(const ProcessSettings&) const = default;
  bool any() const { return *this != ProcessSettings(); }
};

// Malformed ones are ignored.
ProcessSettings read_process_settings(const StringMap& annotations);
void write_process_settings(const ProcessSettings& settings, StringMap& annotations);
void validate_process_settings(const StringMap& annotations, Violations& found);

// "unlimited", "512", "64M"; nullopt: none of these. Defined here because the keeper, which links
// little of core, reads its own limits with it.
inline std::optional<uint64_t> parse_limit(std::string_view text) {
  if (text == "unlimited") return kUnlimited;
  const size_t unit = text.empty() ? std::string_view::npos : kLimitUnits.find(text.back());
  if (unit != std::string_view::npos) text.remove_suffix(1);
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value == kUnlimited) return std::nullopt;
  if (unit == std::string_view::npos) return value;
  const unsigned shift = 10 * (static_cast<unsigned>(unit) + 1);
  return value > kUnlimited >> shift ? std::nullopt : std::optional(value << shift);
}

}  // namespace muster::core
