// Resource limits of processes by the names of limits.conf(5), as text: `unlimited`, or a number,
// with K, M, G or T (1K is 1024), in the unit of setrlimit(2).
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <sys/resource.h>
#include <system_error>

namespace muster::core {

struct ResourceName {
  const char* name;
  int resource;  // RLIMIT_…
};
inline constexpr ResourceName kResourceNames[] = {
    {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},       {"fsize", RLIMIT_FSIZE},       {"locks", RLIMIT_LOCKS},
    {"memlock", RLIMIT_MEMLOCK}, {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
    {"nofile", RLIMIT_NOFILE},   {"nproc", RLIMIT_NPROC},       {"rss", RLIMIT_RSS},
    {"rtprio", RLIMIT_RTPRIO},   {"rttime", RLIMIT_RTTIME},     {"sigpending", RLIMIT_SIGPENDING},
    {"stack", RLIMIT_STACK}};

constexpr uint64_t kUnlimited = RLIM_INFINITY;
constexpr std::string_view kLimitUnits = "KMGT";
constexpr uint64_t kFewestFiles = 64;  // nofile: what a process opens before its exec, and more

// Null: unknown.
constexpr const ResourceName* find_resource(std::string_view name) {
  for (const ResourceName& one : kResourceNames)
    if (name == one.name) return &one;
  return nullptr;
}

// "unlimited", "512", "64M"; nullopt: none of these.
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
