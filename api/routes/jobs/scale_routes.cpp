#include "api/routes/jobs/scale_routes.hpp"

#include "api/request/field_owners.hpp"
#include "api/view/render/job_text.hpp"
#include "base/text/json_text.hpp"

namespace muster::api {
namespace {

OrderedJson scale_json(const core::Job& job, uint64_t version) {
  const core::JobMeta& meta = job.object().meta;
  std::string selector;
  if (const auto& s = job.spec().selector)
    for (const auto& [key, value] : s->match_labels)
      selector += (selector.empty() ? "" : ",") + key + "=" + value;
  return {{"kind", "Scale"},
          {"apiVersion", "autoscaling/v1"},
          {"metadata",
           {{"name", meta.name},
            {"namespace", meta.ns},
            {"uid", meta.uid},
            {"resourceVersion", std::to_string(version)},
            {"creationTimestamp", job_json(job, version)["metadata"]["creationTimestamp"]}}},
          {"spec", {{"replicas", job.state().parallelism}}},
          {"status", {{"replicas", job.active()}, {"selector", selector}}}};
}

}  // namespace

kj::Promise<void> ScaleRoutes::get(Exchange& exchange, const Target& target) {
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  return exchange.send(200, dumped(scale_json(*shown->job, shown->version)) + "\n");
}

kj::Promise<void> ScaleRoutes::write(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  MakeJob make = [said = SentBody::of(exchange, body), gates = options_.knobs.gates,
                  writer = writer(exchange, *options, Kind::job, "scale")](
                     const SeenJob& seen) -> Result<MadeJob> {
    const core::JobObject& old = seen.job->object();
    auto json = written(said, Json(scale_json(*seen.job, seen.version)));
    if (!json.ok()) return json.error();
    const Json* wish = find_path(*json, {"spec", "replicas"});
    const Json replicas = wish ? *wish : Json(0);
    if (!replicas.is_number_integer())
      return Error{Errc::invalid, "spec.replicas: must be a whole number", {}};
    if (!version_holds(version_text(*json), seen.owner_version))
      return Error{Errc::conflict, "", {}};
    Json document = Json::parse(old.json);
    document["spec"]["parallelism"] = replicas;
    auto parsed = parse_job(JsonText{std::move(document), {}}, FieldValidation::ignore);
    if (!parsed.ok()) return parsed.error();
    auto job = update_job(std::move(*parsed), old, observed(*seen.job), gates);
    if (!job.ok()) return job.error();
    return MadeJob{tracked(*job, old.json, writer), {}};
  };
  return change(exchange, target, body.size(), options->dry, std::move(make),
                [&exchange](const Shown& shown) {
                  return exchange.send(200, dumped(scale_json(*shown.job, shown.version)) + "\n");
                });
}

}  // namespace muster::api
