#include "api/routes/jobs/cancel_routes.hpp"

#include "api/request/body.hpp"
#include "api/request/call.hpp"
#include "core/spec/values/well_known.hpp"

namespace muster::api {
namespace {

// Why the job cannot be cancelled; nothing: it can, or it already is.
std::optional<std::string> uncancellable(const core::Job& job, const core::Cancellation& asked) {
  if (job.state().cancelled) return std::nullopt;
  if (asked.indexes && asked.indexes->without(job.state().cancelled_indexes).empty())
    return std::nullopt;
  if (job.finished()) return "has finished";
  if (job.decided()) return "is ending: its outcome is decided";
  if (job.state().deleted_at) return "is being deleted";
  if (const auto& by = job.spec().managed_by; by && *by != core::kReservedManager)
    return "is managed by " + *by + " (spec.managedBy), and muster only stores it";
  return std::nullopt;
}

// Those of `text` that the job has, or why they cannot be cancelled.
Result<core::IndexSet> indexes_of(const core::Job& job, const std::string& text) {
  const auto invalid = [](std::string why) { return Error{Errc::invalid, std::move(why), {}}; };
  if (!job.indexed()) return invalid("the job is not Indexed: cancel it as a whole");
  const core::GangRules& gang = job.gang();
  if (gang.together || gang.breaks() || gang.ranks)
    return invalid("the job is a gang, whose pods need each other: cancel it as a whole");
  auto parsed = core::IndexSet::parse_strict(text, job.index_count());
  if (parsed.ok() && parsed->empty()) return invalid("must be a set such as 3,7-9");
  return parsed;
}

}  // namespace

kj::Promise<void> CancelRoutes::cancel(Exchange& exchange, const Target& target,
                                       const std::string& body) {
  auto json = own_fields(body, {"indexes"});
  if (!json.ok()) return exchange.bad(json.error().message);
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  const core::Job& job = *shown->job;
  core::Cancellation asked{0, exchange.caller.called()};
  if (json->contains("indexes")) {
    const Json& given = (*json)["indexes"];
    if (!given.is_string()) return exchange.bad("indexes: must be a text such as 3,7-9");
    auto indexes = indexes_of(job, given.get<std::string>());
    if (!indexes.ok()) return exchange.bad("indexes: " + indexes.error().message);
    asked.indexes = std::move(*indexes);
  }
  if (const auto why = uncancellable(job, asked))
    return exchange.send_status(409, "Conflict", "jobs.batch \"" + target.name + "\" " + *why);
  if (job.finished()) return answer(exchange, target, asked);
  Call call = new_call();
  backend_.cancel(job.id(), asked, std::move(call.done));
  return call.promise.then([this, &exchange, target, asked](Status status) -> kj::Promise<void> {
    if (status.ok()) return answer(exchange, target, asked);
    // It has finished meanwhile.
    const auto now = view_.job(target.ns, target.name);
    if (const auto why = now ? uncancellable(*now->job, asked) : std::nullopt)
      return exchange.send_status(409, "Conflict", "jobs.batch \"" + target.name + "\" " + *why);
    return exchange.send_error(status.error(), "jobs", target.name);
  });
}

// Of the indexes that the request names, `indexes` are those that are cancelled; the others had
// ended.
kj::Promise<void> CancelRoutes::answer(Exchange& exchange, const Target& target,
                                       const core::Cancellation& asked) const {
  OrderedJson out = {{"kind", "Cancellation"}, {"apiVersion", "muster.dev/v1"}, {"by", asked.by}};
  if (asked.indexes) {
    const auto now = view_.job(target.ns, target.name);
    const core::IndexSet all = now ? now->job->state().cancelled_indexes : core::IndexSet();
    out["indexes"] = asked.indexes->without(asked.indexes->without(all)).text();
  }
  return exchange.send(200, dumped(out) + "\n");
}

}  // namespace muster::api
