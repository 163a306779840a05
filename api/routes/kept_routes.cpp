#include "api/routes/kept_routes.hpp"

#include "api/kube/kept_object.hpp"
#include "api/routes/read_routes.hpp"
#include "api/routes/writes.hpp"

namespace muster::api {
namespace {

core::KeptKind kept_kind(const Target& target) {
  return target.kind == Kind::lease ? core::KeptKind::lease : core::KeptKind::event;
}

KeptRequest request_of(const Exchange& exchange, const Target& target,
                       FieldValidation unknown_fields) {
  return {.kind = kept_kind(target),
          .words = exchange.of_events_group() ? EventWords::events_v1 : EventWords::core_v1,
          .ns = target.ns,
          .name = target.name,
          .unknown_fields = unknown_fields};
}

// The lowest version under which a client may have seen its current state.
uint64_t since(const KeptView& view) {
  return told_since(view.kept->version, view.before);
}

Result<JsonText> read_object(const Exchange& exchange, const std::string& body) {
  auto text = body_json(body, exchange.content_type);
  if (!text.ok()) return text.error();
  auto parsed = parse_json(*text);
  if (parsed.ok() && !parsed->value.is_object())
    return Error{Errc::invalid, "the body has to be an object", {}};
  return parsed;
}

Error of_a_job(const Target& target) {
  return {Errc::invalid,
          "events \"" + target.name + "\": muster tells it of a job, and nobody else writes it",
          {}};
}

// As it would be shown, for a dry run.
KeptView pretended(const core::KeptPtr& kept) {
  return {.kept = kept, .facts = {}, .before = 0};
}

}  // namespace

kj::Promise<void> KeptRoutes::create(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  const std::string resource = resource_name(target.kind);
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  auto text = read_object(exchange, body);
  if (!text.ok()) return exchange.bad(text.error().message);
  auto written = new_kept(std::move(*text), request_of(exchange, target, options->unknown_fields),
                          {random_uid(), random_suffix(), options_.now()});
  if (!written.ok()) return exchange.send_error(written.error(), resource, "");
  if (!written->resource_version.empty())
    return exchange.bad(
        "metadata.resourceVersion: resourceVersion should not be set on objects to be created");
  exchange.warnings = written->warnings;
  Target place = target;
  place.name = written->kept.name;
  auto next = std::make_shared<const core::Kept>(std::move(written->kept));
  if (find(place)) return exchange.send_error({Errc::exists, "", {}}, resource, place.name);
  if (options->dry) {
    const KeptView view = pretended(next);
    return respond(exchange, {.kind = target.kind, .kept = &view, .version = view_.version()}, 201);
  }
  return change(
      exchange, place, false,
      [next](const std::optional<Shown>& seen) -> Result<core::KeptPtr> {
        if (seen) return Error{Errc::exists, "", {}};
        return next;
      },
      1);
}

kj::Promise<void> KeptRoutes::write(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  const bool put = exchange.method == kj::HttpMethod::PUT;
  KeptRequest request = request_of(exchange, target, options->unknown_fields);
  NewKept given{random_uid(), "", options_.now()};
  MakeKept make =
      [&exchange, target, body, put, request = std::move(request),
       given = std::move(given)](const std::optional<Shown>& seen) -> Result<core::KeptPtr> {
    if (!seen && !put) return Error{Errc::not_found, "", {}};
    if (seen && !seen->kept) return of_a_job(target);
    JsonText text;
    if (put) {
      auto read = read_object(exchange, body);
      if (!read.ok()) return read.error();
      text = std::move(*read);
    } else {
      auto patched = written(SentBody::of(exchange, body),
                             Json(kept_json(*seen->kept->kept, seen->version, request.words)));
      if (!patched.ok()) return patched.error();
      text.value = std::move(*patched);
    }
    auto kept = seen ? changed_kept(std::move(text), request, *seen->kept->kept)
                     : new_kept(std::move(text), request, given);
    if (!kept.ok()) return kept.error();
    exchange.warnings = kept->warnings;
    const std::string& version = kept->resource_version;
    // As in Kubernetes, a PUT creates a missing object, unless it names a version.
    if (!seen && !version.empty()) return Error{Errc::not_found, "", {}};
    if (seen && !version_holds(version, since(*seen->kept))) return Error{Errc::conflict, "", {}};
    if (seen && version.empty() && target.kind == Kind::lease)
      return Error{Errc::invalid,
                   "the object breaks rules",
                   {{"metadata.resourceVersion", Violation::Kind::invalid, "0",
                     "must be specified for an update"}}};
    return std::make_shared<const core::Kept>(std::move(kept->kept));
  };
  return change(exchange, target, options->dry, std::move(make), kWriteTries);
}

// The one path for all writes: read, make, judge, hand over; repeat if it changed meanwhile.
kj::Promise<void> KeptRoutes::change(Exchange& exchange, const Target& target, bool dry,
                                     MakeKept make, int tries) {
  const std::string resource = resource_name(target.kind);
  const auto shown = find(target);
  auto made = make(shown);
  if (!made.ok()) return exchange.send_error(made.error(), resource, target.name);
  const core::KeptPtr seen = shown ? shown->kept->kept : nullptr, next = *made;
  const int code = seen ? 200 : 201;
  if (seen && seen->json == next->json) return respond(exchange, *shown);
  if (dry) {
    const KeptView view = pretended(next);
    return respond(exchange, {.kind = target.kind, .kept = &view, .version = view_.version()},
                   code);
  }
  Call call = new_call();
  backend_.write_kept(seen, next, std::move(call.done));
  return call.promise.then([this, &exchange, target, resource, next, code, tries,
                            make = std::move(make)](Status status) mutable -> kj::Promise<void> {
    const Errc failed = status.ok() ? Errc::unavailable : status.error().code;
    const bool again = failed == Errc::conflict || failed == Errc::exists;
    if (!status.ok() && again && tries > 1)
      return change(exchange, target, false, std::move(make), tries - 1);
    if (!status.ok()) return exchange.send_error(status.error(), resource, target.name);
    if (const auto now = find(target); now && now->kept && now->kept->kept->uid == next->uid)
      return respond(exchange, *now, code);
    const KeptView was = pretended(next);  // it has been deleted meanwhile
    return respond(exchange, {.kind = target.kind, .kept = &was, .version = view_.version()}, code);
  });
}

kj::Promise<void> KeptRoutes::remove(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  const std::string resource = resource_name(target.kind);
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad(options.error().message);
  const auto shown = find(target);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, resource, target.name);
  if (!shown->kept) return exchange.send_error(of_a_job(target), resource, target.name);
  const core::KeptPtr seen = shown->kept->kept;
  if (const auto broken =
          broken_precondition(*options, seen->uid, shown->version, since(*shown->kept)))
    return exchange.send_error(*broken, resource, target.name);
  auto success = [&exchange, resource, target, uid = seen->uid] {
    return exchange.send(200, dumped(success_json(resource, target.name, uid)) + "\n");
  };
  if (options->dry) return success();
  Call call = new_call();
  backend_.write_kept(seen, nullptr, std::move(call.done));
  return call.promise.then(
      [&exchange, resource, target, success](Status status) -> kj::Promise<void> {
        if (!status.ok()) return exchange.send_error(status.error(), resource, target.name);
        return success();
      });
}

// Deletes all selected objects. One that changes meanwhile stays.
kj::Promise<void> KeptRoutes::remove_all(Exchange& exchange, const Target& target,
                                         const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad(options.error().message);
  auto query = query_of(exchange, target, gate_);
  if (!query.ok()) return exchange.bad(query.error().message);
  kj::Vector<kj::Promise<void>> all;
  view_.each_kept(kept_kind(target), target.ns, [&](const Shown& shown) {
    if (options->dry || !query->matches(view_, shown)) return;
    Call call = new_call();
    backend_.write_kept(shown.kept->kept, nullptr, std::move(call.done));
    all.add(call.promise.ignoreResult());
  });
  return kj::joinPromises(all.releaseAsArray()).then([&exchange, target] {
    return exchange.send(200, dumped(success_json(resource_name(target.kind), "", "")) + "\n");
  });
}

}  // namespace muster::api
