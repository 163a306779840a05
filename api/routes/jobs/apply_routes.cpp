#include "api/routes/jobs/apply_routes.hpp"

#include "api/kube/objects/canonical.hpp"
#include "api/request/field_owners.hpp"
#include "base/text/json_text.hpp"

namespace muster::api {

kj::Promise<void> ApplyRoutes::apply(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  auto options = apply_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
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

kj::Promise<void> ApplyRoutes::apply_parsed(Exchange& exchange, const Target& target,
                                            const std::string& body, const WriteOptions& options,
                                            ParsedJob parsed) {
  exchange.warnings = parsed.warnings;
  make_metadata_canonical(parsed.document);  // as it is compared with what is stored
  const Writer writer = this->writer(exchange, options, Kind::job);
  const bool force = options.force;
  const std::string version = parsed.resource_version;

  if (!view_.job(target.ns, target.name)) {
    if (parsed.document["metadata"]["name"] != target.name)
      return exchange.bad("metadata.name: the name of the object (" + parsed.meta.name +
                          ") does not match the request (" + target.name + ")");
    if (!version.empty() || !parsed.meta.uid.empty())
      return exchange.send_error(
          {Errc::conflict, "the object names a version or uid, and there is no such object", {}},
          "jobs", target.name);
    auto judge = [parsed = std::move(parsed), admission = admission(target.ns, exchange.caller),
                  writer, force]() -> Admitted {
      auto made = applied("Job", Json::object(), parsed.document, writer, force);
      if (!made.ok()) return {.refused = made.error()};
      auto job = parse_job(JsonText{std::move(*made), {}}, FieldValidation::ignore);
      if (job.ok()) job->warnings = parsed.warnings;
      return admitted(std::move(job), admission, nullptr);
    };
    return aside<Admitted>(body.size(), std::move(judge))
        .then([this, &exchange, target, body, dry = options.dry](Admitted admitted) {
          return admit(exchange, target, std::move(admitted), dry,
                       [this, &exchange, target, body] { return apply(exchange, target, body); });
        });
  }

  MakeJob make = [config = std::move(parsed.document), writer, force, version,
                  gates = options_.knobs.gates](const SeenJob& seen) -> Result<MadeJob> {
    if (!version_holds(version, seen.owner_version)) return Error{Errc::conflict, "", {}};
    const core::JobObject& old = seen.job->object();
    auto made = applied("Job", Json::parse(old.json), config, writer, force);
    if (!made.ok()) return made.error();
    // Check uid, name and namespace as they were sent.
    for (const char* name : {"uid", "name", "namespace"})
      if (config["metadata"].contains(name)) (*made)["metadata"][name] = config["metadata"][name];
    auto job = parse_job(JsonText{std::move(*made), {}}, FieldValidation::ignore);
    if (!job.ok()) return job.error();
    auto updated = update_job(std::move(*job), old, observed(*seen.job), gates);
    if (!updated.ok()) return updated.error();
    return MadeJob{std::move(*updated), {}};
  };
  return change(exchange, target, body.size(), options.dry, std::move(make),
                [this, &exchange](const Shown& shown) { return respond(exchange, shown); });
}

}  // namespace muster::api
