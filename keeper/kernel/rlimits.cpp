#include "keeper/kernel/rlimits.hpp"

#include "core/spec/fields/process_settings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

namespace muster::keeper {
namespace {

struct LimitName {
  const char* name;
  int resource;
};

constexpr LimitName kLimitNames[] = {
    {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},       {"fsize", RLIMIT_FSIZE},       {"locks", RLIMIT_LOCKS},
    {"memlock", RLIMIT_MEMLOCK}, {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
    {"nofile", RLIMIT_NOFILE},   {"nproc", RLIMIT_NPROC},       {"rss", RLIMIT_RSS},
    {"rtprio", RLIMIT_RTPRIO},   {"rttime", RLIMIT_RTTIME},     {"sigpending", RLIMIT_SIGPENDING},
    {"stack", RLIMIT_STACK}};
static_assert(core::kUnlimited == RLIM_INFINITY);

std::string value_text(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

Error limit_error(std::string_view word, const std::string& why) {
  return invalid(std::string(kLimitsVariable) + ": " + std::string(word) + ": " + why);
}

Result<ResourceLimit> read_limit(std::string_view word) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const auto* const known = std::find_if(std::begin(kLimitNames), std::end(kLimitNames),
                                         [name](const LimitName& one) { return name == one.name; });
  if (known == std::end(kLimitNames)) {
    std::string names;
    for (const LimitName& one : kLimitNames)
      names += (names.empty() ? "" : ", ") + std::string(one.name);
    return limit_error(word, "unknown limit; must be one of " + names);
  }
  const std::string_view values = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  const size_t colon = values.find(':');
  const auto soft = core::parse_limit(values.substr(0, colon));
  const auto hard =
      colon == std::string_view::npos ? soft : core::parse_limit(values.substr(colon + 1));
  if (!soft || !hard)
    return limit_error(word, "not " + std::string(name) + "=VALUE or " + std::string(name) +
                                 "=SOFT:HARD, each `unlimited` or a number, with K, M, G or T");
  if (*soft > *hard) return limit_error(word, "the soft limit is above the hard limit");
  if (known->resource == RLIMIT_NOFILE && *soft < core::kFewestFiles)
    return limit_error(
        word, "too few to start a process; must be at least " + std::to_string(core::kFewestFiles));
  return ResourceLimit{known->name, known->resource, {*soft, *hard}};
}

}  // namespace

std::optional<int> resource_named(std::string_view name) {
  for (const LimitName& one : kLimitNames)
    if (name == one.name) return one.resource;
  return std::nullopt;
}

Result<std::vector<ResourceLimit>> read_rlimits(std::string_view text) {
  std::vector<ResourceLimit> limits;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return limits;
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    auto limit = read_limit(word);
    if (!limit.ok()) return limit.error();
    for (const ResourceLimit& before : limits)
      if (before.resource == limit->resource) return limit_error(word, "set twice");
    limits.push_back(*limit);
  }
}

std::string make_room_for(const std::vector<ResourceLimit>& limits) {
  for (const ResourceLimit& limit : limits) {
    rlimit ours{};
    if (getrlimit(limit.resource, &ours) != 0 || limit.value.rlim_max <= ours.rlim_max) continue;
    const rlim_t before = ours.rlim_max;
    ours.rlim_max = limit.value.rlim_max;
    if (setrlimit(limit.resource, &ours) == 0) continue;
    const int error = errno;
    std::string why = std::string(kLimitsVariable) + ": " + limit.name + "=" +
                      value_text(limit.value.rlim_max) + " is above the keeper's own hard limit, " +
                      value_text(before) + ", and it cannot be raised: " + std::strerror(error);
    if (limit.resource == RLIMIT_NOFILE) why += "; at most what /proc/sys/fs/nr_open says";
    return why +
           "; start the keeper with CAP_SYS_RESOURCE or a higher limit (ulimit -H, or "
           "Limit*= in its unit), or ask for less";
  }
  return "";
}

}  // namespace muster::keeper
