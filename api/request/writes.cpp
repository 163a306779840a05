#include "api/request/writes.hpp"

#include "api/kube/objects/status_object.hpp"
#include "api/request/body.hpp"
#include "api/view/query/object_json.hpp"
#include "base/text/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace muster::api {
namespace {

constexpr const char* kBeyond = "beyond bounds";  // path of the only violation

Result<Json> read_written(const SentBody& said, const Json& base) {
  auto text = said.put ? body_json(*said.text, said.content_type) : Result<std::string>(*said.text);
  if (!text.ok()) return text.error();
  auto parsed = parse_json(*text);
  if (!parsed.ok()) return parsed.error();
  Json json = std::move(parsed->value);
  if (said.put) {
    if (!json.is_object()) return Error{Errc::invalid, "the body must be an object", {}};
    return json;
  }
  auto patched = apply_patch(*patch_type(said.content_type), base, json);
  if (!patched.ok()) return patched.error();
  if (!patched->is_object()) return Error{Errc::invalid, "the patch result is not an object", {}};
  return std::move(*patched);
}

}  // namespace

Result<Json> written(const SentBody& said, const Json& base) {
  auto json = read_written(said, base);
  if (!json.ok()) return json.error();
  for (const char* part : {"metadata", "spec", "status"}) {
    auto it = json->find(part);
    if (it == json->end()) continue;
    if (it->is_null())
      json->erase(it);
    else if (!it->is_object())
      return Error{Errc::invalid, std::string(part) + ": must be an object", {}};
  }
  return json;
}

Error taken(const Shown& by) {
  const bool deleted = by.kept ? by.kept->facts.terminating
                               : by.job != nullptr && by.job->state().deleted_at.has_value();
  return {Errc::exists, deleted ? "object is being deleted" : "", {}};
}

std::string version_text(const Json& object) {
  const Json* version = find_path(object, {"metadata", "resourceVersion"});
  if (!version || version->is_null()) return "";
  return version->is_string() ? version->get<std::string>() : "none";
}

bool version_holds(const std::string& wanted, uint64_t owner_version) {
  if (wanted.empty()) return true;
  uint64_t n = 0;
  auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), n);
  return error == std::errc{} && end == wanted.data() + wanted.size() && n >= owner_version;
}

std::string precondition_text(const std::string& what, const std::string& wanted,
                              const std::string& is) {
  return "Precondition failed: " + what + " in precondition: " + wanted + ", " + what +
         " in object meta: " + is;
}

std::optional<Error> broken_precondition(const DeleteOptions& options, const std::string& uid,
                                         uint64_t version, uint64_t since) {
  if (!options.uid.empty() && options.uid != uid)
    return Error{Errc::conflict, precondition_text("UID", options.uid, uid), {}};
  if (!version_holds(options.resource_version, since))
    return Error{
        Errc::conflict,
        precondition_text("ResourceVersion", options.resource_version, std::to_string(version)),
        {}};
  return std::nullopt;
}

std::optional<std::string> beyond_bounds(const std::string& json, size_t before) {
  if (json.size() > std::max(kObjectMax, before))
    return "the object would take " + std::to_string(json.size()) +
           " bytes with its managed fields; the limit is " + std::to_string(kObjectMax);
  const JsonShape shape = json_shape(json);
  if (shape.members > kRequestLimits.members && json.size() > before)
    return "the object would have " + std::to_string(shape.members) +
           " members with its managed fields; the limit is " +
           std::to_string(kRequestLimits.members);
  // Each field is some levels deeper in the managed fields than in the object.
  if (shape.depth > kJsonDepthMax)
    return "the object would nest deeper than " + std::to_string(kJsonDepthMax) +
           " levels with its managed fields";
  return std::nullopt;
}

kj::Promise<void> too_large(Exchange& exchange, const std::string& why) {
  return exchange.send_status(413, "RequestEntityTooLarge", why);
}

Error beyond(std::string why) {
  return {Errc::invalid, "", {{kBeyond, Violation::Kind::too_long, "", std::move(why)}}};
}

kj::Promise<void> send_refused(Exchange& exchange, const Error& error, const std::string& name) {
  if (error.violations.size() == 1 && error.violations.front().path == kBeyond)
    return too_large(exchange, error.violations.front().detail);
  return exchange.send_error(error, "jobs", name);
}

OrderedJson success_json() {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", OrderedJson::object()},
          {"status", "Success"}};
}

OrderedJson success_json(const std::string& resource, const std::string& name,
                         const std::string& uid) {
  OrderedJson json = success_json();
  json["details"] = {{"name", name}};
  if (const auto group = group_of(resource); !group.empty()) json["details"]["group"] = group;
  json["details"]["kind"] = resource;
  json["details"]["uid"] = uid;
  return json;
}

}  // namespace muster::api
