#include "api/request/field_owners.hpp"

#include "api/kube/objects/canonical.hpp"
#include "api/kube/schema/fields.hpp"
#include "api/request/body.hpp"
#include "api/view/query/object_json.hpp"
#include "base/text/json_text.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/violations.hpp"

#include <memory>
#include <utility>

namespace muster::api {
namespace {

// What the server itself added to a new job: owner, selector and generated labels. Defaults count
// as the creator's.
Json generated_parts(const ParsedJob& job, const Json& said) {
  const Json& whole = job.document;
  Json parts = Json::object();
  if (const Json* selector = find_path(whole, {"spec", "selector"});
      selector && !find_path(said, {"spec", "selector"}))
    parts["spec"]["selector"] = *selector;
  auto labels = [](const Json& object, Json& to, const Json* written) {
    const Json* all = find_path(object, {"metadata", "labels"});
    if (!all) return;
    for (const auto& [key, value] : all->items())
      if (!written || !written->contains(key)) to["metadata"]["labels"][key] = value;
  };
  for (const std::string_view key : core::kOwnerKeys)
    if (const auto it = job.meta.annotations.find(std::string(key));
        it != job.meta.annotations.end())
      parts["metadata"]["annotations"][it->first] = it->second;
  labels(whole, parts, find_path(said, {"metadata", "labels"}));
  labels(whole["spec"]["template"], parts["spec"]["template"],
         find_path(said, {"spec", "template", "metadata", "labels"}));
  return parts;
}

}  // namespace

Result<WriteOptions> apply_options(const Url& url) {
  auto options = write_options(url);
  if (options.ok() && options->field_manager.empty()) {
    core::Violations found;
    found.required("fieldManager", "is required for apply patch");
    return Error{Errc::invalid, "the options are invalid", found.take()};
  }
  return options;
}

Result<std::string> applied_object(const std::string& body) {
  auto text = body_json(body, "application/yaml");
  if (!text.ok()) return text.error();
  auto parsed = parse_json(*text);
  if (!parsed.ok()) return parsed.error();
  const Json& json = parsed->value;
  if (!json.is_object())
    return Error{Errc::invalid, "the body must be one object, as YAML or JSON", {}};
  for (const char* name : {"apiVersion", "kind"})
    if (!json.contains(name))
      return Error{Errc::invalid, std::string(name) + ": Required value: of an applied object", {}};
  if (const Json* managed = find_path(json, {"metadata", "managedFields"});
      managed && !managed->is_null() && *managed != Json::array())
    return Error{Errc::invalid, "metadata.managedFields must be nil", {}};
  return std::move(*text);
}

Result<Json> applied_config(Exchange& exchange, const std::string& body, const char* type,
                            FieldValidation unknown_fields) {
  auto text = applied_object(body);
  if (!text.ok()) return text.error();
  auto parsed = parse_json(*text);
  if (!parsed.ok()) return parsed.error();
  auto unknown = conform(parsed->value, type);
  if (!unknown.ok()) return unknown.error();
  auto complaints = field_complaints(*unknown, parsed->duplicates, unknown_fields);
  if (!complaints.ok()) return complaints.error();
  exchange.warnings = std::move(*complaints);
  make_metadata_canonical(parsed->value);  // as it is compared with what is stored
  return std::move(parsed->value);
}

Json node_document(const Shown& shown) {
  Json json(node_json(*shown.node, shown.version));
  json.erase("status");
  return json;
}

std::string managers_text(const Json& object) {
  const Json* list = find_path(object, {"metadata", "managedFields"});
  return list ? list->dump(-1, ' ', false, Json::error_handler_t::replace) : "";
}

core::JobObjectPtr tracked(core::JobObjectPtr job, const std::string& before,
                           const Writer& writer) {
  if (job->json == before) return job;
  Json document = Json::parse(job->json);
  track_update("Job", Json::parse(before, nullptr, false), document, writer);
  auto with = std::make_shared<core::JobObject>(*job);
  with->json = document.dump();
  return with;
}

void track_new(ParsedJob& job, const Json& said, const Writer& writer) {
  track_update("Job", generated_parts(job, said), job.document, writer);
}

core::NodeSpec tracked(core::NodeSpec spec, const Shown& seen, const Json& said,
                       const Writer& writer) {
  core::NodeInfo changed = *seen.node;
  changed.spec = spec;
  Shown shown = seen;
  shown.node = &changed;
  Json after = node_document(shown);
  if (const Json* managers = find_path(said, {"metadata", "managedFields"}))
    after["metadata"]["managedFields"] = *managers;
  track_update("Node", node_document(seen), after, writer);
  spec.managers = managers_text(after);
  return spec;
}

}  // namespace muster::api
