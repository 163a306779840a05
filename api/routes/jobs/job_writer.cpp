#include "api/routes/jobs/job_writer.hpp"

#include "api/kube/objects/refused_fields.hpp"
#include "api/kube/objects/status_object.hpp"
#include "api/kube/objects/template_warnings.hpp"
#include "api/request/field_owners.hpp"
#include "api/view/render/misfits.hpp"
#include "base/text/time_text.hpp"
#include "core/cluster/nodes/demand.hpp"
#include "core/cluster/slots/allowance.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/rules/warnings.hpp"

#include <algorithm>

namespace muster::api {
namespace {

// The addresses to mail to; empty: none.
std::string mail_of(const core::JobMeta& meta) {
  const auto mail = meta.annotations.find(std::string(core::kMailKey));
  return mail == meta.annotations.end() ? "" : mail->second;
}

// For a job that asks for mail where none is sent.
std::string no_mail_warning() {
  return "metadata.annotations[" + std::string(core::kMailKey) +
         "]: no mail will be sent, as the coordinator has no mail program (its --mail-program)";
}

}  // namespace

core::ObservedStatus observed(const core::Job& job) {
  return {job.suspended(), static_cast<int64_t>(job.active()), job.state().started_at.has_value(),
          job.state().deleted_at.has_value()};
}

JobWriter::Admitted JobWriter::admitted(Result<ParsedJob> parsed, const Admission& admission,
                                        const Writer* writer) {
  if (!parsed.ok()) return {.refused = parsed.error()};
  Admitted out{.warnings = parsed->warnings};
  out.name = parsed->meta.name.empty() ? parsed->meta.generate_name : parsed->meta.name;
  const Json said = parsed->document;
  auto job = complete_job(std::move(*parsed), admission);
  if (!job.ok()) {
    out.refused = job.error();
    return out;
  }
  for (std::string& warning : template_warnings(job->document))
    out.warnings.push_back(std::move(warning));
  if (writer) track_new(*job, said, *writer);
  out.job = seal_job(std::move(*job));
  out.name = out.job->meta.name;
  if (auto why = beyond_bounds(out.job->json)) out.refused = beyond(std::move(*why));
  for (std::string& warning : core::creation_warnings(out.job->meta, out.job->spec))
    out.warnings.push_back(std::move(warning));
  for (std::string& warning : ignored_preferences(said)) out.warnings.push_back(std::move(warning));
  return out;
}

kj::Promise<void> JobWriter::admit(Exchange& exchange, const Target& target, Admitted admitted,
                                   bool dry, std::function<Promise()> when_exists) {
  exchange.warnings = admitted.warnings;
  if (admitted.refused) return send_refused(exchange, *admitted.refused, admitted.name);
  const core::JobObjectPtr job = admitted.job;
  const std::string name = admitted.name;
  if (!mail_of(job->meta).empty() && !backend_.sends_mail())
    exchange.warnings.push_back(no_mail_warning());
  if (const auto nodes = unlimited_nodes(view_, core::demand_of(*job)); !nodes.empty())
    exchange.warnings.push_back("the memory limit is not enforced on " + nodes);
  if (auto refused = refuse_privileges(exchange, *job)) return kj::mv(*refused);
  if (view_.job(target.ns, name)) return when_exists();
  if (dry) {
    const core::Job pretended(0, job);
    return respond(exchange, {.kind = Kind::job, .job = &pretended, .version = view_.version()},
                   201);
  }
  if (const auto why = take_quota(exchange.caller)) return AccessGate::forbid(exchange, *why);
  exchange.made = name;
  Call call = new_call();
  backend_.create_job(job, std::move(call.done));
  return call.promise.attach(kj::defer([this, &exchange] { quotas_.arrived(exchange.caller); }))
      .then([this, &exchange, job, name, ns = target.ns,
             when_exists = std::move(when_exists)](Status status) mutable -> kj::Promise<void> {
        if (!status.ok() && status.error().code == Errc::exists) return when_exists();
        if (!status.ok()) return exchange.send_error(status.error(), "jobs", name);
        if (const auto shown = view_.job(ns, name);
            shown && shown->job->object().meta.uid == job->meta.uid)
          return respond(exchange, *shown, 201);
        const core::Job was(0, job);  // it has been deleted meanwhile
        return respond(exchange, {.kind = Kind::job, .job = &was, .version = view_.version()}, 201);
      });
}

std::optional<kj::Promise<void>> JobWriter::refuse_privileges(Exchange& exchange,
                                                              const core::JobObject& job) const {
  const auto why = lacks_privilege(exchange.caller, job);
  if (!why) return std::nullopt;
  return AccessGate::forbid(exchange, *why);
}

std::optional<std::string> JobWriter::lacks_privilege(const Caller& caller,
                                                      const core::JobObject& job) const {
  if (caller.unlimited()) return std::nullopt;
  return core::lacks_rights(job.meta, job.spec, *queues_.all(), options_.access.user_priority_max);
}

std::optional<std::string> JobWriter::notifies_as_another(const Caller& caller,
                                                          const core::JobMeta& old,
                                                          const core::JobMeta& next) const {
  if (caller.role == Role::admin || core::owner_uid(old.annotations) == caller.who.uid)
    return std::nullopt;
  for (const std::string_view key : {core::kNotifyKey, core::kNotifiedKey}) {
    const auto of = [name = std::string(key)](const core::JobMeta& meta) {
      const auto it = meta.annotations.find(name);
      return it == meta.annotations.end() ? std::optional<std::string>() : it->second;
    };
    if (of(old) != of(next))
      return "only the job's owner and admins may change the annotation " + std::string(key) +
             ", whose command runs as the owner";
  }
  return std::nullopt;
}

std::optional<Error> JobWriter::cannot_enter(const core::JobObject& job) const {
  core::Violations found;
  core::enter_queue(job.meta, job.spec, *queues_.all(), found);
  core::fit_limits(job.meta, job.spec, *queues_.all(), found);
  if (found.empty()) return std::nullopt;
  return Error{Errc::invalid, "the job is invalid", found.take()};
}

std::optional<std::string> JobWriter::take_quota(const Caller& caller) {
  const size_t unfinished = view_.jobs().active_of(caller.who.uid);
  if (quotas_.take_job(caller, unfinished)) return std::nullopt;
  return "exceeded quota: the limit is " + std::to_string(quotas_.limits().jobs_max) +
         " unfinished jobs, and this user has " + std::to_string(unfinished);
}

kj::Promise<Result<core::JobObjectPtr>> JobWriter::create_for(std::optional<uint32_t> user,
                                                              Json job, const char* component) {
  if (!options_.roles.any())
    return create_as(Caller{.role = Role::admin}, std::move(job), component);
  if (!user) return Result<core::JobObjectPtr>(invalid("it would have no owner"));
  return directory_.find(*user).then(
      [this, job = std::move(job),
       component](Caller caller) mutable -> kj::Promise<Result<core::JobObjectPtr>> {
        if (caller.role == Role::none || caller.role == Role::metrics)
          return Result<core::JobObjectPtr>(
              invalid("user \"" + caller.who.name + "\" may not create jobs"));
        return create_as(std::move(caller), std::move(job), component);
      },
      [](kj::Exception&& failed) -> kj::Promise<Result<core::JobObjectPtr>> {
        return Result<core::JobObjectPtr>(
            Error{Errc::unavailable, failed.getDescription().cStr(), {}});
      });
}

kj::Promise<Result<core::JobObjectPtr>> JobWriter::create_as(Caller caller, Json document,
                                                             const char* component) {
  using Made = Result<core::JobObjectPtr>;
  const Writer writer{component, "batch/v1", time_text(options_.now()), ""};
  const std::string ns = member_text(document["metadata"], "namespace");
  Admitted made = admitted(parse_job(JsonText{std::move(document), {}}, FieldValidation::ignore),
                           admission(ns, caller), &writer);
  if (made.refused) return Made(invalid(invalid_message("jobs", made.name, *made.refused)));
  if (auto why = lacks_privilege(caller, *made.job)) return Made(invalid(std::move(*why)));
  if (view_.job(ns, made.name)) return Made(Error{Errc::exists, made.name, {}});
  if (auto why = take_quota(caller)) return Made(Error{Errc::overloaded, std::move(*why), {}});
  Call call = new_call();
  backend_.create_job(made.job, std::move(call.done));
  return call.promise.then([this, caller = std::move(caller), job = made.job](Status status) {
    quotas_.arrived(caller);
    return status.ok() ? Made(job) : Made(status.error());
  });
}

// The one path for all changes to a job: read, make, check, submit; repeat if it changed meanwhile.
kj::Promise<void> JobWriter::change(Exchange& exchange, const Target& target, size_t said, bool dry,
                                    MakeJob make, Respond respond, int tries) {
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  if (auto refused = gate_.refuse(exchange)) return kj::mv(*refused);
  const core::JobObjectPtr before = shown->job->object_ptr();
  const size_t bytes = said + before->json.size();
  const SeenJob seen = seen_job(*shown, bytes);
  auto judge = [seen, make]() -> Result<MadeJob> {
    auto made = make(seen);
    if (!made.ok()) return made;
    const core::JobObject& old = seen.job->object();
    auto& warnings = made->warnings;
    std::vector<std::string> more =
        core::update_warnings(old.meta, made->job->meta, made->job->spec);
    if (old.meta.generation != made->job->meta.generation)
      for (std::string& warning : template_warnings(Json::parse(made->job->json)))
        more.push_back(std::move(warning));
    for (std::string& warning : more)
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
        warnings.push_back(std::move(warning));
    if (auto why = beyond_bounds(made->job->json, old.json.size())) return beyond(std::move(*why));
    return made;
  };
  return aside<Result<MadeJob>>(bytes, std::move(judge))
      .then([this, &exchange, target, said, dry, before, make = std::move(make),
             respond = std::move(respond),
             tries](Result<MadeJob> made) mutable -> kj::Promise<void> {
        if (!made.ok()) return send_refused(exchange, made.error(), target.name);
        for (std::string& warning : made->warnings) {
          auto& warnings = exchange.warnings;
          if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
            warnings.push_back(std::move(warning));
        }
        const core::JobObjectPtr job = made->job;
        const bool moves =
            core::queue_of(job->meta.annotations) != core::queue_of(before->meta.annotations);
        if (moves)
          if (auto error = cannot_enter(*job)) return send_refused(exchange, *error, target.name);
        if (auto why = notifies_as_another(exchange.caller, before->meta, job->meta))
          return AccessGate::forbid(exchange, *why);
        if (const std::string mail = mail_of(job->meta);
            !mail.empty() && mail != mail_of(before->meta) && !backend_.sends_mail())
          exchange.warnings.push_back(no_mail_warning());
        if (moves || job->spec.pod.priority != before->spec.pod.priority ||
            job->spec.pod.priority_class_name != before->spec.pod.priority_class_name)
          if (auto refused = refuse_privileges(exchange, *job)) return kj::mv(*refused);
        if (dry || job->json == before->json) {
          const auto now = view_.job(target.ns, target.name);
          if (!now) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
          const core::Job pretended(now->job->id(), job, now->job->state());
          return respond({.kind = Kind::job, .job = &pretended, .version = now->version});
        }
        Call call = new_call();
        backend_.update_job(before, job, std::move(call.done));
        return call.promise.then([this, &exchange, target, job, said, make = std::move(make),
                                  respond = std::move(respond),
                                  tries](Status status) mutable -> kj::Promise<void> {
          if (!status.ok() && status.error().code == Errc::conflict && tries > 1)
            return change(exchange, target, said, false, std::move(make), std::move(respond),
                          tries - 1);
          if (!status.ok())
            return exchange.send_error({status.error().code, "", {}}, "jobs", target.name);
          if (const auto now = view_.job(target.ns, target.name);
              now && now->job->object().meta.uid == job->meta.uid)
            return respond(*now);
          const core::Job was(0, job);  // it has been deleted meanwhile
          return respond({.kind = Kind::job, .job = &was, .version = view_.version()});
        });
      });
}

}  // namespace muster::api
