#include "core/spec/rules/begin.hpp"

#include "core/spec/fields/annotations.hpp"
#include "core/spec/values/instant.hpp"

#include <string>
#include <string_view>

namespace muster::core {
namespace {

std::string begin_path(std::string_view key) {
  return "metadata.annotations[" + std::string(key) + "]";
}

std::string begin_text(const StringMap& annotations, std::string_view key) {
  const auto it = annotations.find(std::string(key));
  return it == annotations.end() ? std::string() : it->second;
}

}  // namespace

std::optional<Millis> begin_of(const StringMap& annotations) {
  const auto it = annotations.find(std::string(kBeginKey));
  return it == annotations.end() ? std::nullopt : read_instant(it->second);
}

bool created_on_hold(const StringMap& annotations) {
  return begin_text(annotations, kHoldKey) == "true";
}

void validate_begin(const StringMap& annotations, Violations& found) {
  if (annotations.contains(std::string(kBeginKey)) && !begin_of(annotations))
    found.invalid(begin_path(kBeginKey), begin_text(annotations, kBeginKey),
                  "must be an instant in RFC 3339, such as 2027-01-31T08:00:00+01:00 or "
                  "2027-01-31T07:00:00Z");
  const std::string hold = begin_text(annotations, kHoldKey);
  if (annotations.contains(std::string(kHoldKey)) && hold != "true" && hold != "false")
    found.invalid(begin_path(kHoldKey), hold, "must be \"true\" or \"false\"");
}

void validate_begin_change(const StringMap& before, const StringMap& now, bool started,
                           Violations& found) {
  const std::string begin = begin_text(now, kBeginKey);
  if (started && !begin.empty() && begin != begin_text(before, kBeginKey))
    found.invalid(begin_path(kBeginKey), begin,
                  "the job has started; muster hold keeps it from starting more pods");
  if (created_on_hold(now) && !created_on_hold(before))
    found.invalid(begin_path(kHoldKey), "true",
                  "only holds a job that is being created; use muster hold");
}

}  // namespace muster::core
