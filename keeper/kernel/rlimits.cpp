#include "keeper/kernel/rlimits.hpp"

#include "core/spec/values/rlimits.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

namespace muster::keeper {
namespace {

std::string value_text(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

Error limit_error(std::string_view word, const std::string& why) {
  return invalid(std::string(kLimitsVariable) + ": " + std::string(word) + ": " + why);
}

Result<ResourceLimit> read_limit(std::string_view word) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const core::ResourceName* const known = core::find_resource(name);
  if (known == nullptr) {
    std::string names;
    for (const core::ResourceName& one : core::kResourceNames)
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
