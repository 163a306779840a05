#include "api/routes/jobs/job_routes.hpp"

#include "api/request/body.hpp"
#include "api/request/field_owners.hpp"
#include "api/routes/kept/owner_deletion.hpp"
#include "base/text/json_text.hpp"

namespace muster::api {

kj::Promise<void> JobRoutes::create(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  auto judge = [body, type = exchange.content_type, unknown = options->unknown_fields,
                admission = admission(target.ns, exchange.caller),
                writer = writer(exchange, *options, Kind::job)]() -> Admitted {
    auto text = body_json(body, type);
    if (!text.ok()) return {.refused = text.error()};
    return admitted(parse_job(*text, unknown), admission, &writer);
  };
  return aside<Admitted>(body.size(), std::move(judge))
      .then([this, &exchange, target, dry = options->dry](Admitted admitted) {
        const std::string name = admitted.name;
        return admit(exchange, target, std::move(admitted), dry, [this, &exchange, target, name] {
          const auto holder = view_.job(target.ns, name);
          return exchange.send_error(holder ? taken(*holder) : Error{Errc::exists, "", {}}, "jobs",
                                     name);
        });
      });
}

kj::Promise<void> JobRoutes::write(Exchange& exchange, const Target& target,
                                   const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  MakeJob make = [said = SentBody::of(exchange, body), unknown = options->unknown_fields,
                  gates = options_.knobs.gates, writer = writer(exchange, *options, Kind::job)](
                     const SeenJob& seen) -> Result<MadeJob> {
    const core::JobObject& old = seen.job->object();
    Json base = Json::parse(old.json);
    base["metadata"]["resourceVersion"] = std::to_string(seen.version);
    auto json = written(said, base);
    if (!json.ok()) return json.error();
    auto parsed = parse_job(JsonText{std::move(*json), {}}, unknown);
    if (!parsed.ok()) return parsed.error();
    if (!version_holds(parsed->resource_version, seen.owner_version))
      return Error{Errc::conflict, "", {}};
    MadeJob made{nullptr, parsed->warnings};
    auto job = update_job(std::move(*parsed), old, observed(*seen.job), gates);
    if (!job.ok()) return job.error();
    made.job = tracked(*job, old.json, writer);
    return made;
  };
  return change(exchange, target, body.size(), options->dry, std::move(make),
                [this, &exchange](const Shown& shown) { return respond(exchange, shown); });
}

kj::Promise<void> JobRoutes::remove(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad_options(options.error());
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  const std::string uid = shown->job->object().meta.uid;
  const uint64_t since = view_.owner_version(shown->job->id());
  if (const auto broken = broken_precondition(*options, uid, shown->version, since))
    return exchange.send_error(*broken, "jobs", target.name);
  if (!options->propagation) exchange.warnings = {kOrphansByDefault};
  if (options->dry) return removed(exchange, target, uid);
  // The raw API's default for batch/v1 (job-semantics 10.4).
  const Propagation propagation = options->propagation.value_or(Propagation::orphan);
  return OwnerDeletion(view_, backend_)
      .job(shown->job->object().meta, propagation)
      .then([this, &exchange, target, uid](Status status) -> kj::Promise<void> {
        if (!status.ok()) return exchange.send_error(status.error(), "jobs", target.name);
        return removed(exchange, target, uid);
      });
}

// Responds with the object if it still exists (foreground deletion), otherwise with a success.
kj::Promise<void> JobRoutes::removed(Exchange& exchange, const Target& target,
                                     const std::string& uid) {
  const auto shown = view_.job(target.ns, target.name);
  if (shown && shown->job->object().meta.uid == uid && shown->job->state().deleted_at)
    return respond(exchange, *shown);
  return exchange.send(200, dumped(success_json("jobs", target.name, uid)) + "\n");
}

}  // namespace muster::api
