#include "api/routes/jobs/hold_routes.hpp"

#include "api/request/body.hpp"
#include "api/request/call.hpp"
#include "api/request/writes.hpp"
#include "base/printable.hpp"
#include "base/text/time_text.hpp"

namespace muster::api {
namespace {

constexpr size_t kReasonMax = 1'024;             // bytes
constexpr int64_t kPriorityMax = 1'000'000'000;  // as in Kubernetes; above are the system's classes

OrderedJson hold_json(const core::JobHeld& hold) {
  return {{"kind", "Hold"},        {"apiVersion", "muster.dev/v1"},
          {"by", hold.by},         {"byOperator", hold.by_operator},
          {"reason", hold.reason}, {"since", time_text(hold.at_ms)}};
}

OrderedJson priority_json(const core::PrioritySet& set) {
  return {{"kind", "Priority"},
          {"apiVersion", "muster.dev/v1"},
          {"by", set.by},
          {"priority", set.priority.value_or(0)},
          {"since", time_text(set.at_ms)}};
}

}  // namespace

std::optional<kj::Promise<void>> HoldRoutes::refuse_ended(Exchange& exchange,
                                                          const Target& target) const {
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  if (!shown->job->finished()) return std::nullopt;
  return exchange.send_status(409, "Conflict",
                              "jobs.batch \"" + target.name + "\" has finished: it starts nothing");
}

kj::Promise<void> HoldRoutes::hold(Exchange& exchange, const Target& job, const std::string& body) {
  auto json = own_fields(body, {"reason"});
  if (!json.ok()) return exchange.bad(json.error().message);
  const Json given = json->value("reason", Json(""));
  if (!given.is_string()) return exchange.bad("reason: must be a text");
  const std::string reason = visible(given.get<std::string>());
  if (reason.size() > kReasonMax)
    return exchange.bad("reason: must have at most " + std::to_string(kReasonMax) + " bytes");
  return change(exchange, job,
                {0, true, exchange.caller.called(), exchange.caller.unlimited(), reason},
                kWriteTries);
}

kj::Promise<void> HoldRoutes::release(Exchange& exchange, const Target& job, const std::string&) {
  return change(exchange, job,
                {0, false, exchange.caller.called(), exchange.caller.unlimited(), ""}, kWriteTries);
}

kj::Promise<void> HoldRoutes::change(Exchange& exchange, const Target& target,
                                     core::HoldChange wanted, int tries) {
  if (auto refused = refuse_ended(exchange, target)) return kj::mv(*refused);
  const auto shown = view_.job(target.ns, target.name);
  if (const auto& now = shown->job->state().hold)
    if (const auto why = keeps_hold(exchange.caller, *now))
      return AccessGate::forbid(exchange, *why);
  Call call = new_call();
  backend_.hold_job(shown->job->id(), wanted, std::move(call.done));
  return call.promise.then([this, &exchange, target, wanted = std::move(wanted),
                            tries](Status status) mutable -> kj::Promise<void> {
    // It has finished, or an operator was faster.
    if (!status.ok() && status.error().code == Errc::conflict && tries > 1)
      return change(exchange, target, std::move(wanted), tries - 1);
    if (!status.ok()) return exchange.send_error(status.error(), "jobs", target.name);
    const auto now = view_.job(target.ns, target.name);
    if (!wanted.hold || !now || !now->job->state().hold)
      return exchange.send(200, dumped(success_json()) + "\n");
    return exchange.send(200, dumped(hold_json(*now->job->state().hold)) + "\n");
  });
}

kj::Promise<void> HoldRoutes::set_priority(Exchange& exchange, const Target& job,
                                           const std::string& body) {
  auto json = own_fields(body, {"priority"});
  if (!json.ok()) return exchange.bad(json.error().message);
  const Json given = json->value("priority", Json());
  const int64_t most = kPriorityMax, least = -kPriorityMax;
  if (!given.is_number_integer() ||
      (given.is_number_unsigned() && given.get<uint64_t>() > uint64_t{kPriorityMax}) ||
      given.get<int64_t>() > most || given.get<int64_t>() < least)
    return exchange.bad("priority: must be a whole number, " + std::to_string(least) + " to " +
                        std::to_string(most));
  return change(exchange, job, static_cast<int32_t>(given.get<int64_t>()));
}

kj::Promise<void> HoldRoutes::drop_priority(Exchange& exchange, const Target& job,
                                            const std::string&) {
  return change(exchange, job, std::nullopt);
}

kj::Promise<void> HoldRoutes::change(Exchange& exchange, const Target& target,
                                     std::optional<int32_t> priority) {
  if (auto refused = refuse_ended(exchange, target)) return kj::mv(*refused);
  Call call = new_call();
  backend_.set_priority(view_.job(target.ns, target.name)->job->id(),
                        {0, priority, exchange.caller.called()}, std::move(call.done));
  return call.promise.then([this, &exchange, target](Status status) -> kj::Promise<void> {
    if (!status.ok()) {
      if (auto refused = refuse_ended(exchange, target)) return kj::mv(*refused);
      return exchange.send_error(status.error(), "jobs", target.name);
    }
    const auto now = view_.job(target.ns, target.name);
    if (!now || !now->job->state().priority)
      return exchange.send(200, dumped(success_json()) + "\n");
    return exchange.send(200, dumped(priority_json(*now->job->state().priority)) + "\n");
  });
}

}  // namespace muster::api
