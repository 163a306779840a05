#include "core/spec/fields/process_settings.hpp"

#include "core/spec/values/rlimits.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

namespace muster::core {
namespace {

template <class T>
std::optional<T> digits(std::string_view text, int base) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value, base);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

std::optional<int32_t> parse_nice(std::string_view text) {
  const auto value = digits<int32_t>(text, 10);
  return value && *value >= 0 && *value <= kNiceMax ? value : std::nullopt;
}

std::optional<uint32_t> parse_umask(std::string_view text) {
  const auto value = digits<uint32_t>(text, 8);
  return value && *value <= 0777 ? value : std::nullopt;
}

std::string octal(uint32_t value) {
  char text[12];
  std::snprintf(text, sizeof text, "%04o", value);
  return text;
}

std::string limit_text(uint64_t value) {
  if (value == kUnlimited) return "unlimited";
  size_t power = 0;
  while (power < kLimitUnits.size() && value != 0 && value % 1024 == 0) value /= 1024, ++power;
  return std::to_string(value) + (power == 0 ? "" : std::string(1, kLimitUnits[power - 1]));
}

// Calls `use` with each limit's name and value; the error is about the first malformed one.
template <class F>
Status each_limit(std::string_view text, const F& use) {
  std::set<std::string_view> met;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return Nothing{};
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const auto value =
        equals == std::string_view::npos ? std::nullopt : parse_limit(word.substr(equals + 1));
    if (std::find(kSoftLimits.begin(), kSoftLimits.end(), name) == kSoftLimits.end()) {
      std::string names;
      for (const std::string_view one : kSoftLimits)
        names += (names.empty() ? "" : ", ") + std::string(one);
      return invalid("`" + std::string(word) + "`: must be NAME=VALUE with one of " + names);
    }
    if (!value)
      return invalid("`" + std::string(word) + "`: must be " + std::string(name) +
                     "=VALUE, `unlimited` or a number, with K, M, G or T");
    if (name == "nofile" && *value < kFewestFiles)
      return invalid("`" + std::string(word) + "`: too few to start a process; must be at least " +
                     std::to_string(kFewestFiles));
    if (!met.insert(name).second) return invalid("`" + std::string(word) + "`: set twice");
    use(name, *value);
  }
}

// Why a job may not write its output there; empty: it may.
std::string wrong_file(const std::string& text, const JobSpec& spec) {
  if (!text.starts_with('/')) return "must be an absolute path";
  const auto pattern = OutputPattern::parse(text);
  if (!pattern.ok()) return pattern.error().message;
  if (text == "/dev/null") return "";
  if (spec.pod.containers.size() + spec.pod.init_containers.size() > 1)
    return "must not be set: the pods have several containers, which would write to one file";
  const int64_t most = spec.completions ? std::max<int64_t>(*spec.completions, 1) : INT32_MAX;
  const Status fits = pattern->fits(spec.indexed(), most > 1);
  return fits ? std::string() : fits.error().message;
}

const std::string* setting_in(const StringMap& annotations, std::string_view key) {
  const auto found = annotations.find(std::string(key));
  return found == annotations.end() ? nullptr : &found->second;
}

}  // namespace

ProcessSettings for_pod(const ProcessSettings& settings, const OutputPod& pod) {
  ProcessSettings out = settings;
  for (std::string* const file : {&out.out, &out.err}) {
    if (file->empty()) continue;
    const auto pattern = OutputPattern::parse(*file);
    *file = pattern.ok() ? pattern->path(pod) : std::string();
    if (pattern.ok() && !pattern->has('a') && !pattern->has('p') && pod.attempt.value_or(0) > 0)
      out.append = true;
  }
  return out;
}

ProcessSettings read_process_settings(const StringMap& annotations) {
  ProcessSettings read;
  if (const auto* text = setting_in(annotations, kNiceKey)) read.nice = parse_nice(*text);
  if (const auto* text = setting_in(annotations, kUmaskKey)) read.umask = parse_umask(*text);
  if (const auto* text = setting_in(annotations, kUlimitsKey)) {
    const Status sound = each_limit(*text, [&read](std::string_view name, uint64_t value) {
      read.soft_limits.emplace(name, value);
    });
    if (!sound) read.soft_limits.clear();
  }
  for (const auto& [key, file] :
       {std::pair(kStdoutKey, &read.out), std::pair(kStderrKey, &read.err)})
    if (const auto* text = setting_in(annotations, key);
        text != nullptr && text->starts_with('/') && OutputPattern::parse(*text).ok())
      *file = *text;
  const auto* err = setting_in(annotations, kStderrKey);
  read.joined = err != nullptr && *err == kWithStdout;
  return read;
}

void write_process_settings(const ProcessSettings& settings, StringMap& annotations) {
  if (settings.nice) annotations[std::string(kNiceKey)] = std::to_string(*settings.nice);
  if (settings.umask) annotations[std::string(kUmaskKey)] = octal(*settings.umask);
  if (!settings.out.empty()) annotations[std::string(kStdoutKey)] = settings.out;
  if (!settings.err.empty()) annotations[std::string(kStderrKey)] = settings.err;
  if (settings.joined) annotations[std::string(kStderrKey)] = kWithStdout;
  if (settings.soft_limits.empty()) return;
  std::string text;
  for (const auto& [name, value] : settings.soft_limits)
    text += (text.empty() ? "" : " ") + name + "=" + limit_text(value);
  annotations[std::string(kUlimitsKey)] = std::move(text);
}

void validate_process_settings(const StringMap& annotations, const JobSpec& spec,
                               Violations& found) {
  const auto check = [&](std::string_view key, const auto& wrong) {
    const auto* text = setting_in(annotations, key);
    if (text == nullptr) return;
    if (std::string why = wrong(*text); !why.empty())
      found.invalid("metadata.annotations[" + std::string(key) + "]", *text, std::move(why));
  };
  check(kNiceKey, [](const std::string& text) {
    return parse_nice(text) ? "" : "must be a whole number, 0 to " + std::to_string(kNiceMax);
  });
  check(kUmaskKey, [](const std::string& text) {
    return std::string(parse_umask(text) ? "" : "must be an octal number, 0 to 0777");
  });
  check(kUlimitsKey, [](const std::string& text) {
    const Status sound = each_limit(text, [](std::string_view, uint64_t) {});
    return sound ? std::string() : sound.error().message;
  });
  check(kStdoutKey, [&spec](const std::string& text) { return wrong_file(text, spec); });
  check(kStderrKey, [&spec](const std::string& text) {
    return text == kWithStdout ? std::string() : wrong_file(text, spec);
  });
}

}  // namespace muster::core
