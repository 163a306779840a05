#include "api/routes/jobs/status_routes.hpp"

#include "api/kube/objects/status_rules.hpp"
#include "api/request/field_owners.hpp"
#include "api/view/render/job_text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace muster::api {
namespace {

constexpr const char* kForeground = "foregroundDeletion";  // shown on a job that is being deleted

// The metadata that an owner may write.
Json own_metadata(const Json& object) {
  Json meta = object.value("metadata", Json::object());
  for (const char* name : {"resourceVersion", "managedFields", "generation", "creationTimestamp",
                           "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})
    meta.erase(name);
  return meta;
}

// The stored job with the metadata of `written`; the spec is unchanged.
Result<core::JobObjectPtr> with_metadata(const core::Job& job, const Json& written,
                                         FieldValidation unknown_fields, const core::Gates& gates) {
  Json document = Json::parse(job.object().json);
  const Json* had = find_path(document, {"metadata", "finalizers"});
  const bool ours = had && std::find(had->begin(), had->end(), kForeground) != had->end();
  document["metadata"] = written.at("metadata");
  if (auto it = document["metadata"].find("finalizers");
      !ours && it != document["metadata"].end() && it->is_array()) {
    Json kept = Json::array();
    for (const Json& one : *it)
      if (one != kForeground) kept.push_back(one);
    *it = std::move(kept);
  }
  auto parsed = parse_job(JsonText{std::move(document), {}}, unknown_fields);
  if (!parsed.ok()) return parsed.error();
  return update_job(std::move(*parsed), job.object(), observed(job), gates);
}

}  // namespace

kj::Promise<void> StatusRoutes::write(Exchange& exchange, const Target& target,
                                      const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  return change(exchange, target, body, *options, kWriteTries);
}

namespace {

// The outcome of a status write.
struct JudgedStatus {
  std::optional<Error> refused;
  core::StatusWrite write;
  std::vector<std::string> warnings;
  std::string answer;  // for a dry run
};

struct StatusRequest {
  SentBody said;
  FieldValidation unknown_fields;
  core::Gates gates;
  Writer writer;
};

JudgedStatus judge_status(const SeenJob& seen, const StatusRequest& request) {
  const core::Job& job = *seen.job;
  JudgedStatus out;
  auto refused = [&out](Error error) {
    out.refused = std::move(error);
    return out;
  };
  Json base(job_json(job, seen.own_version));
  if (!base["status"].is_object()) base["status"] = Json::object();
  (void)conform_status(base["status"]);  // an earlier version may have stored it
  auto json = written(request.said, base);
  if (!json.ok()) return refused(json.error());
  if (!version_holds(version_text(*json), seen.own_version))
    return refused({Errc::conflict, "", {}});

  Json& status = (*json)["status"];
  if (status.is_null()) status = Json::object();
  auto unknown = conform_status(status);
  if (!unknown.ok()) return refused(unknown.error());
  auto complaints = field_complaints(*unknown, {}, request.unknown_fields);
  if (!complaints.ok()) return refused(complaints.error());
  out.warnings = std::move(*complaints);

  core::JobObjectPtr object = job.object_ptr();
  if (json->contains("metadata") && own_metadata(*json) != own_metadata(base)) {
    auto made = with_metadata(job, *json, request.unknown_fields, request.gates);
    if (!made.ok()) return refused(made.error());
    object = tracked(*made, object->json, request.writer);
  }
  const auto queue = [](const core::JobObject& one) {
    return core::queue_of(one.meta.annotations);
  };
  if (queue(*object) != queue(job.object())) {
    core::Violations moved;
    moved.forbidden("metadata.annotations[" + std::string(core::kQueueKey) + "]",
                    "the queue is changed by writing the job, not its status");
    return refused({Errc::invalid, "the status is invalid", moved.take()});
  }
  const bool elsewhere = managed_elsewhere(job.spec(), request.gates);
  core::Violations found = elsewhere ? status_violations(job.spec(), base["status"], status)
                                     : kept_by_us(base["status"], status);
  if (!found.empty()) return refused({Errc::invalid, "the status is invalid", found.take()});

  core::StatusWrite& write = out.write;
  write = {.conditions = !elsewhere, .seen = job.object_ptr(), .object = object};
  write.seen_json = elsewhere ? job.state().external_status : job.state().own_conditions;
  write.json = status == base["status"] ? write.seen_json
               : elsewhere              ? status.dump()
                                        : own_conditions(status);
  auto why = beyond_bounds(write.json, write.seen_json.size());
  if (!why) why = beyond_bounds(object->json, job.object().json.size());
  if (why) return refused(beyond(std::move(*why)));
  out.answer = json->dump() + "\n";
  return out;
}

}  // namespace

kj::Promise<void> StatusRoutes::change(Exchange& exchange, const Target& target,
                                       const std::string& body, const WriteOptions& options,
                                       int tries) {
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  if (auto refused = gate_.refuse(exchange)) return kj::mv(*refused);
  const core::JobState& state = shown->job->state();
  const size_t bytes = body.size() + shown->job->object().json.size() +
                       state.external_status.size() + state.own_conditions.size();
  const SeenJob seen = seen_job(*shown, bytes);
  StatusRequest request{SentBody::of(exchange, body), options.unknown_fields, options_.knobs.gates,
                        writer(exchange, options, Kind::job, "status")};
  auto judge = [seen, request = std::move(request)] { return judge_status(seen, request); };
  return aside<JudgedStatus>(bytes, std::move(judge))
      .then([this, &exchange, target, body, options,
             tries](JudgedStatus judged) -> kj::Promise<void> {
        exchange.warnings = std::move(judged.warnings);
        if (judged.refused) return send_refused(exchange, *judged.refused, target.name);
        const core::StatusWrite& write = judged.write;
        const auto now = view_.job(target.ns, target.name);
        if (now && write.json == write.seen_json && write.object->json == write.seen->json)
          return respond(exchange, *now);
        if (options.dry) return exchange.send(200, judged.answer);
        Call call = new_call();
        backend_.write_status(std::move(judged.write), std::move(call.done));
        return call.promise.then(
            [this, &exchange, target, body, options, tries](Status done) -> kj::Promise<void> {
              if (!done.ok() && done.error().code == Errc::conflict && tries > 1)
                return change(exchange, target, body, options, tries - 1);
              const auto after = view_.job(target.ns, target.name);
              if (!done.ok() || !after)
                return exchange.send_error(
                    {done.ok() ? Errc::not_found : done.error().code, "", {}}, "jobs", target.name);
              return respond(exchange, *after);
            });
      });
}

}  // namespace muster::api
