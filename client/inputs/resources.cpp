#include "client/inputs/resources.hpp"

#include "base/text/comma_list.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/limit_signal.hpp"
#include "core/spec/fields/process_settings.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/mail.hpp"
#include "core/spec/values/quantity.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr int64_t kMemoryMax = int64_t{1} << 50;  // bytes; more than any node has
constexpr const char* kUnlimited = "true";        // --scratch without a value

// Parses a time as Slurm writes it: "2:30" (minutes and seconds), "1:30:00", "1-12", "1-12:30",
// "2-00:00:00". Absent: not a time, or only a number, which may be one of minutes or of seconds.
std::optional<Millis> clock_time(std::string_view text) {
  constexpr int64_t kDaysMax = 10'000, kHoursMax = 24 * kDaysMax;
  const size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = has_days ? whole_number(text.substr(0, dash)) : 0;
  if (!days || *days > kDaysMax) return std::nullopt;
  text.remove_prefix(has_days ? dash + 1 : 0);
  std::vector<int64_t> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(':', from), text.size());
    const auto number = whole_number(text.substr(from, end - from));
    const bool first = parts.empty();
    if (!number || *number > (first ? kHoursMax : 59) || (!first && end - from > 2))
      return std::nullopt;
    parts.push_back(*number);
    from = end + 1;
  }
  if (parts.size() > 3 || (parts.size() == 1 && !has_days)) return std::nullopt;
  if (parts.size() == 2 && !has_days) parts.insert(parts.begin(), 0);
  parts.resize(3);
  return (((*days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2]) * 1000;
}

// What a number of minutes would be: "0:03:00".
std::string minutes_text(int64_t minutes) {
  const std::string rest = std::to_string(minutes % 60);
  return std::to_string(minutes / 60) + (rest.size() < 2 ? ":0" : ":") + rest + ":00";
}

std::optional<Millis> read_span(const std::string& text) {
  if (const auto time = clock_time(text)) return time;
  const auto span = core::parse_duration(text);
  return span ? std::optional(*span) : std::nullopt;
}

// A flag whose value is no duration: `right` says what would be one, unless it only lacks a unit.
Error no_span(const std::string& flag, const std::string& text, const std::string& right) {
  const auto span = core::parse_duration(text);
  const bool number = text.find_first_not_of("0123456789.") == std::string::npos;
  return invalid(flag + ": `" + text + "`: " + (number && !span ? span.error().message : right));
}

// An amount of memory; absent: it is none, or has no unit.
std::optional<int64_t> read_amount(const std::string& text) {
  const auto amount = core::parse_quantity_milli(text);
  if (!amount || *amount <= 0 || text.ends_with('m') || whole_number(text)) return std::nullopt;
  return *amount;
}

// Each part of `text` must be more than the one before it; the first more than `least`, the value
// of `flag`.
template <class F>
Status ascending(const std::string& name, const std::string& text, int64_t least,
                 const std::string& flag, F value_of) {
  std::string before = flag;
  for (const std::string& part : split_at_commas(text)) {
    const auto value = value_of(part);
    if (value && *value <= least)
      return invalid(name + ": `" + part + "`: must be more than " + before);
    if (value) least = *value;
    before = part + ", which comes before it";
  }
  return Nothing{};
}

}  // namespace

Status read_cpus(const std::string& text, ResourceWishes& into) {
  const auto amount = core::parse_quantity_milli(text);
  if (!amount || *amount <= 0)
    return invalid("--cpus: `" + text + "`: must be a number above 0, such as 2, 0.5 or 500m");
  into.cpus = text;
  return Nothing{};
}

Status read_memory(const std::string& text, ResourceWishes& into) {
  const auto amount = core::parse_quantity_milli(text);
  if (!amount || *amount <= 0 || text.ends_with('m'))
    return invalid("--mem: `" + text + "`: must be an amount such as 512Mi or 4Gi");
  if (*amount > kMemoryMax * 1000) return invalid("--mem: `" + text + "`: must be at most 1Pi");
  if (whole_number(text))  // a bare number means megabytes elsewhere, bytes in a manifest
    return invalid("--mem: `" + text + "`: needs a unit, such as " + text + "Mi or " + text + "M");
  into.memory = text;
  return Nothing{};
}

Status read_gpus(const std::string& text, ResourceWishes& into) {
  const size_t equals = text.find('=');
  const auto count =
      whole_number(equals == std::string::npos ? text : std::string_view(text).substr(equals + 1));
  if (!count || *count == 0 || equals == 0)
    return invalid("--gpus: `" + text + "`: must be a number above 0, or such as amd.com/gpu=2");
  into.devices[equals == std::string::npos ? kGpu : text.substr(0, equals)] = *count;
  return Nothing{};
}

Status read_time(const std::string& text, ResourceWishes& into) {
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto number = whole_number(text);
  if (lower == "unlimited" || lower == "infinite" || (number && *number == 0))
    return invalid("--time: `" + text + "`: for no limit, leave --time out");
  if (number)
    return invalid("--time: `" + text + "`: needs a unit: for minutes, as in sbatch, write " +
                   text + "m or " + minutes_text(*number));
  const std::optional<Millis> time = read_span(text);
  if (!time || *time <= 0)
    return no_span("--time", text, "must be a duration such as 90m, 1h30m, 1:30:00 or 2-12:00");
  into.time_s = (*time + 999) / 1000;
  return Nothing{};
}

Status read_retry_memory(const std::string& text, ResourceWishes& into) {
  for (const std::string& part : split_at_commas(text))
    if (!read_amount(part))
      return invalid("--retry-mem: `" + part + "`: must be amounts with a unit, such as 8Gi,16Gi");
  into.retry_memory = text;
  return Nothing{};
}

Status read_retry_time(const std::string& text, ResourceWishes& into) {
  into.retry_time.clear();
  for (const std::string& part : split_at_commas(text)) {
    const auto span = read_span(part);
    if (!span || *span <= 0)
      return no_span("--retry-time", part, "must be durations such as 2h,8h or 8:00:00");
    into.retry_time += (into.retry_time.empty() ? "" : ",") + core::duration_text(*span);
  }
  return Nothing{};
}

Status read_signal(const std::string& text, ResourceWishes& into) {
  if (auto right = core::parse_limit_signal(text); !right)
    return invalid("--signal: " + right.error().message);
  into.signal = text;
  return Nothing{};
}

Status read_grace(const std::string& text, ResourceWishes& into) {
  constexpr Millis kGraceMax = Millis{366} * 86'400'000;
  const auto span = core::parse_duration(text);
  if (!span || *span > kGraceMax)
    return no_span("--grace", text, "must be a duration such as 90s or 5m");
  into.grace_s = (*span + 999) / 1000;
  return Nothing{};
}

Status read_after(const std::string& text, ResourceWishes& into) {
  // Slurm's words mean the same.
  static const std::map<std::string, std::string> kOfSlurm = {
      {"afterok", "ok"}, {"afternotok", "notok"}, {"afterany", "any"}, {"aftercorr", "each"}};
  const size_t colon = text.find(':');
  const auto known = kOfSlurm.find(text.substr(0, colon));
  const std::string mine = colon != std::string::npos && known != kOfSlurm.end()
                               ? known->second + text.substr(colon)
                               : text;
  const std::string all = into.after.empty() ? mine : into.after + "," + mine;
  if (auto right = core::parse_after(all); !right)
    return invalid("--after: " + right.error().message);
  into.after = all;
  return Nothing{};
}

Status read_node_label(const std::string& text, ResourceWishes& into) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    return invalid("--node-selector: `" + text + "`: must be LABEL=VALUE");
  into.node_selector[text.substr(0, equals)] = text.substr(equals + 1);
  return Nothing{};
}

Status read_label(const std::string& text, ResourceWishes& into) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    return invalid("--label: `" + text + "`: must be NAME=VALUE, such as project=tides");
  into.labels[text.substr(0, equals)] = text.substr(equals + 1);
  return Nothing{};
}

Status read_ttl(const std::string& text, ResourceWishes& into) {
  constexpr int64_t kTtlMax = std::numeric_limits<int32_t>::max();  // of the API's field
  const auto span = core::parse_duration(text);
  if (!span || (*span + 999) / 1000 > kTtlMax)
    return no_span("--ttl", text, "must be a duration such as 7d, or 0s");
  into.ttl_s = (*span + 999) / 1000;
  return Nothing{};
}

Status check_scratch(const ResourceWishes& wishes) {
  const std::string& text = wishes.scratch;
  if (text.empty() || text == kUnlimited) return Nothing{};
  const auto amount = core::parse_quantity_milli(text);
  if (!amount || *amount <= 0 || text.ends_with('m'))
    return invalid("--scratch: `" + text + "`: must be an amount such as --scratch=10Gi");
  if (whole_number(text))
    return invalid("--scratch: `" + text + "`: needs a unit, such as --scratch=" + text + "Gi");
  return Nothing{};
}

Status check_notice(const ResourceWishes& wishes) {
  if (!wishes.mail.empty())
    if (auto right = core::parse_mail(wishes.mail); !right)
      return invalid("--mail: " + right.error().message);
  if (wishes.notify.size() > core::kNotifyMax)
    return invalid("--notify: must be at most " + std::to_string(core::kNotifyMax) +
                   " bytes; put the command in a script");
  if (!wishes.notify_on.empty() && wishes.mail.empty() && wishes.notify.empty())
    return invalid("--notify-on needs --mail or --notify");
  return Nothing{};
}

Status check_signal(const ResourceWishes& wishes) {
  if (wishes.signal.empty()) return Nothing{};
  if (wishes.time_s == 0) return invalid("--signal needs --time: it comes before that limit");
  if (core::parse_limit_signal(wishes.signal)->before_ms >= wishes.time_s * 1000)
    return invalid("--signal: `" + wishes.signal +
                   "`: must come later than the start, and --time is " +
                   std::to_string(wishes.time_s) + "s");
  return Nothing{};
}

Status check_retries(const ResourceWishes& wishes) {
  if (!wishes.retry_memory.empty()) {
    if (wishes.memory.empty())
      return invalid("--retry-mem needs --mem, which the first attempt of each index has");
    if (Status right = ascending("--retry-mem", wishes.retry_memory, *read_amount(wishes.memory),
                                 "--mem, " + wishes.memory, read_amount);
        !right)
      return right;
  }
  if (wishes.retry_time.empty()) return Nothing{};
  if (wishes.time_s == 0)
    return invalid("--retry-time needs --time, which the first attempt of each index has");
  return ascending("--retry-time", wishes.retry_time, wishes.time_s * 1000,
                   "--time, " + core::duration_text(wishes.time_s * 1000), read_span);
}

Status fits_here(const ResourceWishes& wishes, int64_t pods, const MachineRoom& room) {
  const auto lacks = [pods](const std::string& there, const std::string& wanted) {
    return invalid(
        "this machine has " + there + ", and " +
        (pods > 1 ? std::to_string(pods) + " pods that start together need " + wanted + " each"
                  : "a pod needs " + wanted) +
        "; select a coordinator whose nodes have more with --api or MUSTER_API");
  };
  const auto cpus = core::parse_quantity_milli(wishes.cpus);
  if (cpus && *cpus > room.cpus * 1000 / pods)
    return lacks(std::to_string(room.cpus) + (room.cpus == 1 ? " CPU" : " CPUs"), wishes.cpus);
  const auto memory = core::parse_quantity_milli(wishes.memory);
  if (memory && *memory / 1000 > room.memory_bytes / pods)
    return lacks(std::to_string(room.memory_bytes >> 20) + "Mi of memory", wishes.memory);
  if (!wishes.devices.empty())
    return invalid("a run on this machine has no " + wishes.devices.begin()->first +
                   " to give; select a coordinator whose nodes offer them with --api or "
                   "MUSTER_API");
  return Nothing{};
}

int64_t threads_of(const ResourceWishes& wishes) {
  const auto milli = core::parse_quantity_milli(wishes.cpus);
  return milli ? (*milli + 999) / 1000 : 0;
}

Json with_resources(Json manifest, const ResourceWishes& wishes) {
  Json& pod = manifest["spec"]["template"]["spec"];
  Json& container = pod["containers"][0];
  if (!wishes.cpus.empty()) container["resources"]["requests"]["cpu"] = wishes.cpus;
  if (!wishes.memory.empty()) {
    container["resources"]["requests"]["memory"] = wishes.memory;
    container["resources"]["limits"]["memory"] = wishes.memory;
  }
  for (const auto& [name, count] : wishes.devices) {
    container["resources"]["requests"][name] = std::to_string(count);
    container["resources"]["limits"][name] = std::to_string(count);
  }
  if (wishes.time_s > 0) pod["activeDeadlineSeconds"] = wishes.time_s;
  for (const auto& [name, value] : wishes.labels) manifest["metadata"]["labels"][name] = value;
  if (wishes.ttl_s) manifest["spec"]["ttlSecondsAfterFinished"] = *wishes.ttl_s;
  if (wishes.max_fails) manifest["spec"]["maxFailedIndexes"] = *wishes.max_fails;
  if (wishes.grace_s) pod["terminationGracePeriodSeconds"] = *wishes.grace_s;
  if (wishes.priority) pod["priority"] = *wishes.priority;
  for (const auto& [label, value] : wishes.node_selector) pod["nodeSelector"][label] = value;
  if (!wishes.scratch.empty()) {
    Json volume = {{"name", "scratch"}, {"emptyDir", Json::object()}};
    if (wishes.scratch != kUnlimited) volume["emptyDir"]["sizeLimit"] = wishes.scratch;
    pod["volumes"].push_back(std::move(volume));
  }
  auto annotate = [&manifest](std::string_view key, const std::string& value) {
    if (!value.empty()) manifest["metadata"]["annotations"][std::string(key)] = value;
  };
  annotate(core::kSignalKey, wishes.signal);
  annotate(core::kQueueKey, wishes.queue);
  annotate(core::kAfterKey, wishes.after);
  annotate(core::kMailKey, wishes.mail);
  annotate(core::kNotifyKey, wishes.notify);
  annotate(core::kNotifyOnKey, wishes.notify_on);
  annotate(core::kBeginKey, wishes.begin);
  annotate(core::kPlacementKey, wishes.placement);
  annotate(core::kRetryMemoryKey, wishes.retry_memory);
  annotate(core::kRetryTimeKey, wishes.retry_time);
  if (wishes.hold) annotate(core::kHoldKey, "true");
  if (wishes.private_tmp) annotate(core::kPrivateTmpKey, "true");
  if (wishes.nice) annotate(core::kNiceKey, std::to_string(*wishes.nice));
  if (wishes.gang) annotate(core::kGangKey, "true");
  if (wishes.gang && wishes.raises()) annotate(core::kRestartKey, "gang");  // all get more, or none
  return manifest;
}

Error in_flags(Error error) {
  constexpr std::pair<const char*, const char*> kFlags[] = {
      {"metadata.annotations[muster.dev/queue]", "--queue"},
      {"spec.template.spec.activeDeadlineSeconds", "--time"},
      {"spec.template.spec.priority", "--priority"}};
  for (const auto& [field, flag] : kFlags) {
    for (Violation& one : error.violations)
      if (one.path == field) one.path = flag;
    const std::string path = std::string(field) + ": ";
    if (const size_t at = error.message.find(path); at != std::string::npos)
      error.message.replace(at, path.size(), std::string(flag) + ": ");
  }
  for (Violation& one : error.violations)
    if (one.path == "--queue" && one.detail.starts_with("Not found"))
      one.detail += "; muster get queues lists the queues";
  return error;
}

}  // namespace muster::cli
