#include "client/news/usage.hpp"

#include "base/text/time_text.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/quantity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace muster::cli {
namespace {

double real_at(const Json& json, const char* key) {
  const Json& value = at(json, {key});
  return value.is_number() ? value.get<double>() : 0;
}

double requested_of(const Json& container, const char* resource) {
  for (const char* part : {"requests", "limits"}) {
    const std::string text = text_at(container, {"resources", part, resource});
    const auto milli = core::parse_quantity_milli(text);
    if (!text.empty() && milli && *milli > 0) return static_cast<double>(*milli) / 1000;
  }
  return 0;
}

std::string share_text(double part, double whole) {
  if (whole <= 0) return "";
  return " (" + std::to_string(std::llround(100 * part / whole)) + "%)";
}

// As quantities are written, rounded to three or four digits.
std::string bytes_text(double bytes) {
  std::array<char, 32> text;
  const char* unit = "Ki";
  for (bytes /= 1024; bytes >= 9999.5 && *unit != 'T'; bytes /= 1024)
    unit = *unit == 'K' ? "Mi" : *unit == 'M' ? "Gi" : "Ti";
  std::snprintf(text.data(), text.size(), "%.0f%s", bytes, unit);
  return text.data();
}

}  // namespace

Requested requested_by(const Json& job) {
  Requested out;
  for (const Json& container : at(job, {"spec", "template", "spec", "containers"})) {
    out.cpus += requested_of(container, "cpu");
    out.memory_bytes += requested_of(container, "memory");
  }
  return out;
}

std::string cpu_text(const Json& usage, double ran_seconds, const Requested& requested) {
  if (!usage.is_object()) return "-";
  const double used = real_at(usage, "userSeconds") + real_at(usage, "systemSeconds");
  return precise_span(used) + share_text(used, requested.cpus * ran_seconds);
}

std::string cpu_mode_text(const Json& usage, const char* mode) {
  return usage.is_object() ? precise_span(real_at(usage, mode)) : "-";
}

std::string cpu_parts_text(const Json& usage, double ran_seconds, const Requested& requested) {
  if (!usage.is_object()) return "-";
  return cpu_text(usage, ran_seconds, requested) + ", user " + cpu_mode_text(usage, "userSeconds") +
         ", system " + cpu_mode_text(usage, "systemSeconds");
}

std::string waited(const Json& attempt) {
  const auto from = parse_time(text_at(attempt, {"created"}));
  const auto to = parse_time(text_at(attempt, {"started"}));
  if (!from || !to) return "-";
  return precise_span(static_cast<double>(std::max<Millis>(0, *to - *from)) / 1000);
}

std::string memory_text(const Json& usage, const Requested& requested) {
  const double peak = real_at(usage, "peakMemoryBytes");
  if (peak <= 0) return "-";
  return bytes_text(peak) + share_text(peak, requested.memory_bytes);
}

}  // namespace muster::cli
