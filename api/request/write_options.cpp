#include "api/request/write_options.hpp"

#include "api/request/body.hpp"
#include "base/text/json.hpp"
#include "base/text/json_text.hpp"
#include "core/spec/values/violations.hpp"

#include <algorithm>
#include <charconv>

namespace muster::api {
namespace {

void check_dry_run(const std::string& dry, core::Violations& found) {
  if (!dry.empty() && dry != "All") found.not_supported("dryRun", dry, {"All"});
}

Error refusal(core::Violations found) {
  return Error{Errc::invalid, "the options are invalid", found.take()};
}

std::string text_field(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_string() ? object[name].get<std::string>()
                                                           : std::string();
}

Result<Millis> grace(int64_t seconds) {
  constexpr int64_t kMax = 366LL * 86400;
  if (seconds < 0 || seconds > kMax)
    return invalid("gracePeriodSeconds: " + std::to_string(seconds) + ": must be between 0 and " +
                   std::to_string(kMax));
  return seconds * 1000;
}

bool printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

std::string manager_name(const WriteOptions& options, const std::string& user_agent) {
  if (!options.field_manager.empty()) return options.field_manager;
  std::string name = user_agent.substr(0, std::min(user_agent.find('/'), kManagerNameMax));
  std::erase_if(name, [](char c) { return !printable({&c, 1}); });
  return name.empty() ? "unknown" : name;
}

Result<WriteOptions> write_options(const Url& url) {
  WriteOptions options;
  core::Violations found;
  const std::string strictness = url.get("fieldValidation"), dry = url.get("dryRun");
  if (strictness == "Strict")
    options.unknown_fields = FieldValidation::strict;
  else if (strictness == "Ignore")
    options.unknown_fields = FieldValidation::ignore;
  else if (!strictness.empty() && strictness != "Warn")
    found.not_supported("fieldValidation", strictness, {"", "Ignore", "Strict", "Warn"});
  check_dry_run(dry, found);
  options.dry = !dry.empty();
  options.field_manager = url.get("fieldManager");
  options.force = url.flag("force");
  if (options.field_manager.size() > kManagerNameMax)
    found.too_long("fieldManager", kManagerNameMax);
  if (!printable(options.field_manager))
    found.invalid("fieldManager", std::string_view(options.field_manager),
                  "should only contain printable characters");
  if (!found.empty()) return refusal(std::move(found));
  return options;
}

Result<DeleteOptions> delete_options(const Url& url, const std::string& body,
                                     const std::string& content_type) {
  DeleteOptions found;
  std::string policy = url.get("propagationPolicy"), dry = url.get("dryRun");
  std::optional<int64_t> seconds;
  if (const std::string text = url.get("gracePeriodSeconds"); !text.empty()) {
    int64_t n = -1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{} || end != text.data() + text.size())
      return invalid("gracePeriodSeconds: not a number: \"" + text + "\"");
    seconds = n;
  }
  if (std::string orphan = url.get("orphanDependents"); !orphan.empty() && policy.empty())
    policy = orphan == "true" ? "Orphan" : "Background";
  if (!body.empty()) {
    auto text = body_json(body, content_type);
    if (!text.ok()) return text.error();
    auto parsed = parse_json(*text);
    if (!parsed.ok()) return parsed.error();
    Json json = std::move(parsed->value);
    if (!json.is_object()) return invalid("the body is not a DeleteOptions object");
    // In an Eviction, the options are one level down.
    if (json.contains("deleteOptions") && json["deleteOptions"].is_object())
      json = Json(json["deleteOptions"]);
    if (auto p = text_field(json, "propagationPolicy"); !p.empty())
      policy = p;
    else if (json.contains("orphanDependents") && json["orphanDependents"].is_boolean())
      policy = json["orphanDependents"].get<bool>() ? "Orphan" : "Background";
    if (json.contains("dryRun") && json["dryRun"].is_array() && !json["dryRun"].empty())
      dry = json["dryRun"][0].is_string() ? json["dryRun"][0].get<std::string>() : "?";
    if (json.contains("gracePeriodSeconds") && json["gracePeriodSeconds"].is_number_integer())
      seconds = json["gracePeriodSeconds"].get<int64_t>();
    if (json.contains("preconditions") && json["preconditions"].is_object()) {
      found.uid = text_field(json["preconditions"], "uid");
      found.resource_version = text_field(json["preconditions"], "resourceVersion");
    }
  }
  if (seconds) {
    auto ms = grace(*seconds);
    if (!ms.ok()) return ms.error();
    found.grace_ms = *ms;
  }
  core::Violations wrong;
  check_dry_run(dry, wrong);
  found.dry = !dry.empty();
  if (policy == "Background")
    found.propagation = Propagation::background;
  else if (policy == "Foreground")
    found.propagation = Propagation::foreground;
  else if (policy == "Orphan")
    found.propagation = Propagation::orphan;
  else if (!policy.empty())
    wrong.not_supported("propagationPolicy", policy, {"Foreground", "Background", "Orphan", "nil"});
  if (!wrong.empty()) return refusal(std::move(wrong));
  return found;
}

}  // namespace muster::api
