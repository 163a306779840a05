// Writing jobs: create, replace, patch, scale, status, delete.
#include "api/kube/manifest.hpp"
#include "api/kube/status_object.hpp"
#include "api/routes/routes.hpp"
#include "api/view/job_text.hpp"
#include "core/spec/warnings.hpp"
#include "text/json_text.hpp"

#include <algorithm>
#include <charconv>

namespace muster::api {
namespace {

// What Kubernetes says when a deletion leaves the fate of the pods to the default of batch/v1.
constexpr const char* kOrphansByDefault =
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning";
constexpr size_t kListMax = 4u << 20;  // bytes of what was deleted, in the answer
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

Error conflict() {
  return {Errc::conflict, "", {}};
}

}  // namespace

core::ObservedStatus observed(const core::Job& job) {
  return {job.suspended(), static_cast<int64_t>(job.active()), job.state().start_ms != 0};
}

Call new_call() {
  auto paf = kj::newPromiseAndFulfiller<Status>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Status>>>(kj::mv(paf.fulfiller));
  return {kj::mv(paf.promise),
          [fulfiller](Status status) { (*fulfiller)->fulfill(kj::mv(status)); }};
}

OrderedJson success_json(const std::string& resource, const std::string& name,
                         const std::string& uid) {
  OrderedJson json = {{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"metadata", OrderedJson::object()},
                      {"status", "Success"}};
  json["details"] = {{"name", name}};
  if (const auto group = group_of(resource); !group.empty()) json["details"]["group"] = group;
  json["details"]["kind"] = resource;
  json["details"]["uid"] = uid;
  return json;
}

namespace {

Result<Json> read_written(const SaidBody& said, const Json& base) {
  auto text = said.put ? body_json(*said.text, said.content_type) : Result<std::string>(*said.text);
  if (!text.ok()) return text.error();
  auto parsed = parse_json(*text);
  if (!parsed.ok()) return parsed.error();
  Json json = std::move(parsed->value);
  if (said.put) {
    if (!json.is_object()) return Error{Errc::invalid, "the body has to be an object", {}};
    return json;
  }
  auto patched = apply_patch(*patch_type(said.content_type), base, json);
  if (!patched.ok()) return patched.error();
  if (!patched->is_object()) return Error{Errc::invalid, "the patch leaves no object", {}};
  return std::move(*patched);
}

}  // namespace

Result<Json> written(const SaidBody& said, const Json& base) {
  auto json = read_written(said, base);
  if (!json.ok()) return json.error();
  for (const char* part : {"metadata", "spec", "status"}) {
    auto it = json->find(part);
    if (it == json->end()) continue;
    if (it->is_null())
      json->erase(it);
    else if (!it->is_object())
      return Error{Errc::invalid, std::string(part) + ": has to be an object", {}};
  }
  return json;
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
           " bytes with its managed fields; at most " + std::to_string(kObjectMax) + " are kept";
  const JsonShape shape = json_shape(json);
  if (shape.members > kRequestLimits.members && json.size() > before)
    return "the object would have " + std::to_string(shape.members) +
           " members with its managed fields; at most " + std::to_string(kRequestLimits.members) +
           " are kept";
  // Fields that are managed are listed some levels deeper than they stand.
  if (shape.depth > kJsonDepthMax)
    return "the object would nest deeper than " + std::to_string(kJsonDepthMax) +
           " levels with its managed fields";
  return std::nullopt;
}

kj::Promise<void> too_large(Exchange& exchange, const std::string& why) {
  return exchange.send_status(413, "RequestEntityTooLarge", why);
}

namespace {
constexpr const char* kBeyond = "beyond bounds";  // the path of the one violation
}  // namespace

Error beyond(std::string why) {
  return {Errc::invalid, "", {{kBeyond, Violation::Kind::too_long, "", std::move(why)}}};
}

kj::Promise<void> send_refused(Exchange& exchange, const Error& error, const std::string& name) {
  if (error.violations.size() == 1 && error.violations.front().path == kBeyond)
    return too_large(exchange, error.violations.front().detail);
  return exchange.send_error(error, "jobs", name);
}

std::string Routes::random_uid() {
  const uint64_t a = options_.random(), b = options_.random();
  char text[37];
  snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%012llx", static_cast<unsigned>(a >> 32),
           static_cast<unsigned>(a >> 16 & 0xffff), static_cast<unsigned>(a & 0xfff),
           static_cast<unsigned>(0x8000 | (b >> 48 & 0x3fff)),
           static_cast<unsigned long long>(b & 0xffffffffffffu));
  return text;
}

std::string Routes::random_suffix() {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  uint64_t n = options_.random();
  std::string text;
  for (int i = 0; i < 5; ++i, n /= kAlphabet.size()) text += kAlphabet[n % kAlphabet.size()];
  return text;
}

kj::Promise<void> Routes::respond(Exchange& exchange, const Shown& shown, int code) {
  std::string text;
  renderer_.whole(text, shown, exchange.form());
  return exchange.send(code, text + "\n");
}

kj::Promise<void> Routes::create(Exchange& exchange, const Target& target,
                                 const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  const Admission admission{target.ns, random_uid(), options_.now(), random_suffix(),
                            options_.knobs.gates};
  auto judge = [body, type = exchange.content_type, unknown = options->unknown_fields, admission,
                writer = writer(exchange, *options, Kind::job)]() -> Admitted {
    auto text = body_json(body, type);
    if (!text.ok()) return {.refused = text.error()};
    return admitted(parse_job(*text, unknown), admission, &writer);
  };
  return aside<Admitted>(body.size(), std::move(judge))
      .then([this, &exchange, target, dry = options->dry](Admitted admitted) {
        const std::string name = admitted.name;
        return admit(exchange, target, std::move(admitted), dry, [&exchange, name] {
          return exchange.send_error({Errc::exists, "", {}}, "jobs", name);
        });
      });
}

Routes::Admitted Routes::admitted(Result<ParsedJob> parsed, const Admission& admission,
                                  const Writer* writer) {
  if (!parsed.ok()) return {.refused = parsed.error()};
  Admitted out{.warnings = parsed->warnings};
  out.name = parsed->meta.name.empty() ? parsed->meta.generate_name : parsed->meta.name;
  const Json said = parsed->document;
  auto job = admit_job(std::move(*parsed), admission);
  if (!job.ok()) {
    out.refused = job.error();
    return out;
  }
  out.job = writer ? tracked_new(*job, said, *writer) : *job;
  out.name = out.job->meta.name;
  if (auto why = beyond_bounds(out.job->json)) out.refused = beyond(std::move(*why));
  for (std::string& warning : core::creation_warnings(out.job->meta, out.job->spec))
    out.warnings.push_back(std::move(warning));
  return out;
}

kj::Promise<void> Routes::admit(Exchange& exchange, const Target& target, Admitted admitted,
                                bool dry, std::function<Promise()> when_exists) {
  exchange.warnings = admitted.warnings;
  if (admitted.refused) return send_refused(exchange, *admitted.refused, admitted.name);
  const core::JobObjectPtr job = admitted.job;
  const std::string name = admitted.name;
  if (view_.job(target.ns, name)) return when_exists();
  if (dry) {
    const core::Job pretended(0, job);
    return respond(exchange, {.kind = Kind::job, .job = &pretended, .version = view_.version()},
                   201);
  }
  Call call = new_call();
  backend_.create_job(job, std::move(call.done));
  return call.promise.then(
      [this, &exchange, job, name, ns = target.ns,
       when_exists = std::move(when_exists)](Status status) mutable -> kj::Promise<void> {
        if (!status.ok() && status.error().code == Errc::exists) return when_exists();
        if (!status.ok()) return exchange.send_error(status.error(), "jobs", name);
        if (const auto shown = view_.job(ns, name);
            shown && shown->job->object().meta.uid == job->meta.uid)
          return respond(exchange, *shown, 201);
        const core::Job was(0, job);  // somebody has deleted it already
        return respond(exchange, {.kind = Kind::job, .job = &was, .version = view_.version()}, 201);
      });
}

// One way for all changes of a job: look, make, judge, hand over; again when it changed meanwhile.
kj::Promise<void> Routes::change_job(Exchange& exchange, const Target& target, size_t said,
                                     bool dry, MakeJob make, Respond respond, int tries) {
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  const core::JobObjectPtr before = shown->job->object_ptr();
  const size_t bytes = said + before->json.size();
  const SeenJob seen = seen_job(*shown, bytes);
  auto judge = [seen, make]() -> Result<MadeJob> {
    auto made = make(seen);
    if (!made.ok()) return made;
    const core::JobObject& old = seen.job->object();
    auto& warnings = made->warnings;
    for (std::string& warning : core::update_warnings(old.meta, made->job->meta, made->job->spec))
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
          auto& told = exchange.warnings;
          if (std::find(told.begin(), told.end(), warning) == told.end())
            told.push_back(std::move(warning));
        }
        const core::JobObjectPtr job = made->job;
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
            return change_job(exchange, target, said, false, std::move(make), std::move(respond),
                              tries - 1);
          if (!status.ok())
            return exchange.send_error({status.error().code, "", {}}, "jobs", target.name);
          if (const auto now = view_.job(target.ns, target.name);
              now && now->job->object().meta.uid == job->meta.uid)
            return respond(*now);
          const core::Job was(0, job);  // somebody has deleted it already
          return respond({.kind = Kind::job, .job = &was, .version = view_.version()});
        });
      });
}

kj::Promise<void> Routes::write_job(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  MakeJob make = [said = SaidBody::of(exchange, body), unknown = options->unknown_fields,
                  gates = options_.knobs.gates, writer = writer(exchange, *options, Kind::job)](
                     const SeenJob& seen) -> Result<MadeJob> {
    const core::JobObject& old = seen.job->object();
    Json base = Json::parse(old.json);
    base["metadata"]["resourceVersion"] = std::to_string(seen.version);
    auto json = written(said, base);
    if (!json.ok()) return json.error();
    auto parsed = parse_job(JsonText{std::move(*json), {}}, unknown);
    if (!parsed.ok()) return parsed.error();
    if (!version_holds(parsed->resource_version, seen.owner_version)) return conflict();
    MadeJob made{nullptr, parsed->warnings};
    auto job = update_job(std::move(*parsed), old, observed(*seen.job), gates);
    if (!job.ok()) return job.error();
    made.job = tracked(*job, old.json, writer);
    return made;
  };
  return change_job(
      exchange, target, body.size(), options->dry, std::move(make),
      [this, &exchange](const Shown& shown) { return respond(exchange, shown); }, kWriteTries);
}

kj::Promise<void> Routes::get_scale(Exchange& exchange, const Target& target) {
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  return exchange.send(200, dumped(scale_json(*shown->job, shown->version)) + "\n");
}

kj::Promise<void> Routes::write_scale(Exchange& exchange, const Target& target,
                                      const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  MakeJob make = [said = SaidBody::of(exchange, body), gates = options_.knobs.gates,
                  writer = writer(exchange, *options, Kind::job, "scale")](
                     const SeenJob& seen) -> Result<MadeJob> {
    const core::JobObject& old = seen.job->object();
    auto json = written(said, Json(scale_json(*seen.job, seen.version)));
    if (!json.ok()) return json.error();
    const Json* wish = find_path(*json, {"spec", "replicas"});
    const Json replicas = wish ? *wish : Json(0);
    if (!replicas.is_number_integer())
      return Error{Errc::invalid, "spec.replicas: has to be a whole number", {}};
    if (!version_holds(version_text(*json), seen.owner_version)) return conflict();
    Json document = Json::parse(old.json);
    document["spec"]["parallelism"] = replicas;
    auto parsed = parse_job(JsonText{std::move(document), {}}, FieldValidation::ignore);
    if (!parsed.ok()) return parsed.error();
    auto job = update_job(std::move(*parsed), old, observed(*seen.job), gates);
    if (!job.ok()) return job.error();
    return MadeJob{tracked(*job, old.json, writer), {}};
  };
  return change_job(
      exchange, target, body.size(), options->dry, std::move(make),
      [&exchange](const Shown& shown) {
        return exchange.send(200, dumped(scale_json(*shown.job, shown.version)) + "\n");
      },
      kWriteTries);
}

kj::Promise<void> Routes::remove_job(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad(options.error().message);
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  const std::string uid = shown->job->object().meta.uid;
  const uint64_t since = view_.owner_version(shown->job->id());
  if (const auto broken = broken_precondition(*options, uid, shown->version, since))
    return exchange.send_error(*broken, "jobs", target.name);
  if (!options->propagation) exchange.warnings = {kOrphansByDefault};
  if (options->dry) return removed(exchange, target, uid);
  Call call = new_call();
  // The raw API's default for batch/v1 (job-semantics 10.4).
  backend_.delete_job(target.ns, target.name, uid,
                      options->propagation.value_or(Propagation::orphan), std::move(call.done));
  return call.promise.then([this, &exchange, target, uid](Status status) -> kj::Promise<void> {
    if (!status.ok()) return exchange.send_error(status.error(), "jobs", target.name);
    return removed(exchange, target, uid);
  });
}

// The object while it is still there (in the foreground), else that it is gone.
kj::Promise<void> Routes::removed(Exchange& exchange, const Target& target,
                                  const std::string& uid) {
  const auto shown = view_.job(target.ns, target.name);
  if (shown && shown->job->object().meta.uid == uid && shown->job->state().deleted_ms != 0)
    return respond(exchange, *shown);
  return exchange.send(200, dumped(success_json("jobs", target.name, uid)) + "\n");
}

// A whole collection, as its selectors say: each object as if it were deleted alone. Answers with
// the list of what was there, or just that it is done when that list is a long one.
kj::Promise<void> Routes::remove_all(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad(options.error().message);
  auto query = query_of(exchange.url, target);
  if (!query.ok()) return exchange.bad(query.error().message);
  if (target.kind == Kind::job && !options->propagation) exchange.warnings = {kOrphansByDefault};
  std::string items;
  std::vector<core::JobObjectPtr> jobs;
  std::map<JobId, std::vector<PodKey>> pods;
  view_.each(query->kind, query->ns, query->wanted(), [&](const Shown& shown) {
    if (!query->matches(view_, shown)) return;
    if (items.size() <= kListMax) {
      if (!items.empty()) items += ",";
      renderer_.object(items, shown);
    }
    if (target.kind == Kind::job)
      jobs.push_back(shown.job->object_ptr());
    else
      pods[shown.job->id()].push_back(shown.pod->key);
  });
  std::string answer = items.size() > kListMax
                           ? dumped(success_json(resource_name(target.kind), "", "")) + "\n"
                           : renderer_.list_head(target.kind, Form::plain) + items +
                                 renderer_.list_tail({view_.version(), "", 0});
  if (options->dry) return exchange.send(200, std::move(answer));
  kj::Vector<kj::Promise<void>> all;
  for (const core::JobObjectPtr& job : jobs) {
    Call call = new_call();
    backend_.delete_job(job->meta.ns, job->meta.name, job->meta.uid,
                        options->propagation.value_or(Propagation::orphan), std::move(call.done));
    all.add(call.promise.ignoreResult());
  }
  for (auto& [job, keys] : pods) {
    Call call = new_call();
    backend_.delete_pods(job, std::move(keys), false, options->grace_ms, std::move(call.done));
    all.add(call.promise.ignoreResult());
  }
  return kj::joinPromises(all.releaseAsArray())
      .then([&exchange, answer = std::move(answer)]() mutable {
        return exchange.send(200, std::move(answer));
      });
}

}  // namespace muster::api
