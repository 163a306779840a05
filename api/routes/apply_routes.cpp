// Server-side apply, and who manages which field after any write.
#include "api/kube/fields.hpp"
#include "api/routes/routes.hpp"
#include "text/json_text.hpp"
#include "text/time_text.hpp"

namespace muster::api {
namespace {

Result<WriteOptions> apply_options(const Url& url) {
  auto options = write_options(url);
  if (options.ok() && options->field_manager.empty())
    return Error{Errc::invalid, "fieldManager: Required value: is required for apply patch", {}};
  return options;
}

// The object that is applied, as JSON.
Result<std::string> applied_object(const std::string& body) {
  auto text = body_json(body, "application/yaml");
  if (!text.ok()) return text.error();
  auto parsed = parse_json(*text);
  if (!parsed.ok()) return parsed.error();
  const Json& json = parsed->value;
  if (!json.is_object())
    return Error{Errc::invalid, "the body has to be one object, as YAML or JSON", {}};
  for (const char* name : {"apiVersion", "kind"})
    if (!json.contains(name))
      return Error{Errc::invalid, std::string(name) + ": Required value: of an applied object", {}};
  if (const Json* managed = find_path(json, {"metadata", "managedFields"});
      managed && !managed->is_null() && *managed != Json::array())
    return Error{Errc::invalid, "metadata.managedFields must be nil", {}};
  return std::move(*text);
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

// What the server added to a new job by itself, as an object: selector and generated labels.
// Defaults are the creator's.
std::string generated_parts(const core::JobObject& job, const Json& said) {
  const Json whole = Json::parse(job.json);
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
  labels(whole, parts, find_path(said, {"metadata", "labels"}));
  labels(whole["spec"]["template"], parts["spec"]["template"],
         find_path(said, {"spec", "template", "metadata", "labels"}));
  return parts.dump();
}

}  // namespace

Writer Routes::writer(const Exchange& exchange, const WriteOptions& options, Kind kind,
                      const std::string& subresource) const {
  return {manager_name(options, exchange.user_agent), api_version(kind), time_text(options_.now()),
          subresource};
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

core::JobObjectPtr tracked_new(core::JobObjectPtr job, const Json& said, const Writer& writer) {
  return tracked(job, generated_parts(*job, said), writer);
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

kj::Promise<void> Routes::apply_job(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = apply_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  auto read = [body, name = target.name, unknown = options->unknown_fields]() -> Result<ParsedJob> {
    auto text = applied_object(body);
    if (!text.ok()) return text.error();
    auto parsed = parse_job(*text, unknown);
    if (parsed.ok() && parsed->meta.name.empty()) parsed->document["metadata"]["name"] = name;
    return parsed;
  };
  return aside<Result<ParsedJob>>(body.size(), std::move(read))
      .then([this, &exchange, target, body,
             options = std::move(*options)](Result<ParsedJob> parsed) -> kj::Promise<void> {
        if (!parsed.ok()) return exchange.bad(parsed.error().message);
        return apply_parsed(exchange, target, body, options, std::move(*parsed));
      });
}

kj::Promise<void> Routes::apply_parsed(Exchange& exchange, const Target& target,
                                       const std::string& body, const WriteOptions& options,
                                       ParsedJob parsed) {
  exchange.warnings = parsed.warnings;
  const Writer writer = this->writer(exchange, options, Kind::job);
  const bool force = options.force;
  const std::string version = parsed.resource_version;

  if (!view_.job(target.ns, target.name)) {
    if (parsed.document["metadata"]["name"] != target.name)
      return exchange.bad("metadata.name: the name of the object (" + parsed.meta.name +
                          ") is not the one of the request (" + target.name + ")");
    if (!version.empty() || !parsed.meta.uid.empty())
      return exchange.send_error(
          {Errc::conflict, "the object names a version or uid, and there is no such object", {}},
          "jobs", target.name);
    const Admission admission{target.ns, random_uid(), options_.now(), random_suffix(),
                              options_.knobs.gates};
    auto judge = [parsed = std::move(parsed), admission, writer, force]() -> Admitted {
      auto made = applied("Job", Json::object(), parsed.document, writer, force);
      if (!made.ok()) return {.refused = made.error()};
      auto job = parse_job(JsonText{std::move(*made), {}}, FieldValidation::ignore);
      if (job.ok()) job->warnings = parsed.warnings;
      return admitted(std::move(job), admission, nullptr);
    };
    return aside<Admitted>(body.size(), std::move(judge))
        .then([this, &exchange, target, body, dry = options.dry](Admitted admitted) {
          return admit(exchange, target, std::move(admitted), dry, [this, &exchange, target, body] {
            return apply_job(exchange, target, body);
          });
        });
  }

  MakeJob make = [config = std::move(parsed.document), writer, force, version,
                  gates = options_.knobs.gates](const SeenJob& seen) -> Result<MadeJob> {
    if (!version_holds(version, seen.owner_version)) return Error{Errc::conflict, "", {}};
    const core::JobObject& old = seen.job->object();
    auto made = applied("Job", Json::parse(old.json), config, writer, force);
    if (!made.ok()) return made.error();
    // uid, name and namespace are judged as they were written.
    for (const char* name : {"uid", "name", "namespace"})
      if (config["metadata"].contains(name)) (*made)["metadata"][name] = config["metadata"][name];
    auto job = parse_job(JsonText{std::move(*made), {}}, FieldValidation::ignore);
    if (!job.ok()) return job.error();
    auto updated = update_job(std::move(*job), old, observed(*seen.job), gates);
    if (!updated.ok()) return updated.error();
    return MadeJob{std::move(*updated), {}};
  };
  return change_job(
      exchange, target, body.size(), options.dry, std::move(make),
      [this, &exchange](const Shown& shown) { return respond(exchange, shown); }, kWriteTries);
}

kj::Promise<void> Routes::apply_node(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  auto options = apply_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  auto text = applied_object(body);
  if (!text.ok()) return exchange.bad(text.error().message);
  Json config = Json::parse(*text);
  auto unknown = conform(config, "Node");
  if (!unknown.ok()) return exchange.bad(unknown.error().message);
  if (!unknown->empty() && options->unknown_fields == FieldValidation::strict)
    return exchange.bad("strict decoding error: unknown field \"" + unknown->front() + "\"");
  if (config["kind"] != "Node" || config["apiVersion"] != "v1")
    return exchange.bad("apiVersion and kind: expected v1 Node");
  const Json* name = find_path(config, {"metadata", "name"});
  if (name && *name != target.name)
    return exchange.bad("metadata.name: the object is not the one of the request (" + target.name +
                        ")");
  MakeNode make = [config, force = options->force, writer = writer(exchange, *options, Kind::node)](
                      const Shown& seen) -> Result<core::NodeSpec> {
    if (!version_holds(version_text(config), seen.version)) return Error{Errc::conflict, "", {}};
    auto made = applied("Node", node_document(seen), config, writer, force);
    if (!made.ok()) return made.error();
    auto spec = node_spec(*made, *seen.node);
    if (!spec.ok()) return spec.error();
    spec->managers = managers_text(*made);
    return spec;
  };
  return change_node(exchange, target, options->dry, std::move(make), kWriteTries);
}

}  // namespace muster::api
