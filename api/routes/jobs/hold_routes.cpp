#include "api/routes/jobs/hold_routes.hpp"

#include "api/request/body.hpp"
#include "api/request/call.hpp"
#include "api/request/writes.hpp"
#include "base/printable.hpp"
#include "base/text/time_text.hpp"

namespace muster::api {
namespace {

constexpr size_t kHoldReasonMax = 1'024;                   // bytes
constexpr int64_t kPriorityMax = core::kPriorityClassMax;  // above are the system's classes

OrderedJson hold_json(const core::JobHeld& hold) {
  return {{"kind", "Hold"},        {"apiVersion", "muster.dev/v1"},
          {"by", hold.by},         {"byOperator", hold.by_operator},
          {"reason", hold.reason}, {"since", time_text(hold.at_ms)}};
}

OrderedJson overrides_json(const core::OverridesSet& set) {
  OrderedJson json = {{"kind", "Overrides"}, {"apiVersion", "muster.dev/v1"}, {"by", set.by}};
  const auto& [priority, queue, time_limit_s] = set.overrides;
  if (priority) json["priority"] = *priority;
  if (queue) json["queue"] = *queue;
  if (time_limit_s) json["timeLimitSeconds"] = *time_limit_s;
  json["since"] = time_text(set.at_ms);
  return json;
}

// A whole number in these bounds.
std::optional<int64_t> whole_in(const Json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most))
    return std::nullopt;
  const auto number = value.get<int64_t>();
  return number < least || number > most ? std::nullopt : std::optional(number);
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
  const std::string reason = reason_line(given.get<std::string>());
  if (reason.size() > kHoldReasonMax)
    return exchange.bad("reason: must have at most " + std::to_string(kHoldReasonMax) + " bytes");
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

kj::Promise<void> HoldRoutes::set_overrides(Exchange& exchange, const Target& job,
                                            const std::string& body) {
  auto json = own_fields(body, {"priority", "queue", "timeLimitSeconds"});
  if (!json.ok()) return exchange.bad(json.error().message);
  if (json->empty()) return exchange.bad("one of priority, queue and timeLimitSeconds is required");
  core::Overrides checked;
  if (const Status right = apply(*json, checked); !right.ok())
    return exchange.bad(right.error().message);
  return set_overrides(exchange, job, std::move(*json), kWriteTries);
}

Status HoldRoutes::apply(const Json& wanted, core::Overrides& overrides) const {
  for (const auto& [field, value] : wanted.items()) {
    const bool drops = value.is_null();
    if (field == "priority") {
      const auto number = whole_in(value, -kPriorityMax, kPriorityMax);
      if (!drops && !number)
        return invalid("priority: must be a whole number, " + std::to_string(-kPriorityMax) +
                       " to " + std::to_string(kPriorityMax) + ", or null");
      overrides.priority.reset();
      if (number) overrides.priority = static_cast<int32_t>(*number);
    } else if (field == "queue") {
      if (!drops && !value.is_string())
        return invalid("queue: must be the name of a queue, or null");
      overrides.queue.reset();
      if (drops) continue;
      overrides.queue = value.get<std::string>();
      if (*overrides.queue != core::kDefaultQueue && !queues_.all()->find(*overrides.queue))
        return invalid("queue: there is no queue " + visible(*overrides.queue) +
                       " (see muster get queues)");
    } else {
      const auto number = whole_in(value, 0, std::numeric_limits<int32_t>::max());
      if (!drops && !number)
        return invalid("timeLimitSeconds: must be a whole number, 0 to " +
                       std::to_string(std::numeric_limits<int32_t>::max()) + ", or null");
      overrides.time_limit_s = number;
    }
  }
  return Nothing{};
}

kj::Promise<void> HoldRoutes::set_overrides(Exchange& exchange, const Target& target, Json wanted,
                                            int tries) {
  if (auto refused = refuse_ended(exchange, target)) return kj::mv(*refused);
  const core::Job& job = *view_.job(target.ns, target.name)->job;
  const auto& set = job.state().overrides;
  const core::Overrides seen = set ? set->overrides : core::Overrides{};
  core::Overrides next = seen;
  if (const Status right = apply(wanted, next); !right.ok())
    return exchange.bad(right.error().message);
  Call call = new_call();
  backend_.override_job(job.id(), {0, seen, next, exchange.caller.called()}, std::move(call.done));
  return call.promise.then([this, &exchange, target, wanted = std::move(wanted),
                            tries](Status status) mutable -> kj::Promise<void> {
    // It has finished, or another operator was faster.
    if (!status.ok() && status.error().code == Errc::conflict && tries > 1)
      return set_overrides(exchange, target, std::move(wanted), tries - 1);
    if (!status.ok()) return exchange.send_error(status.error(), "jobs", target.name);
    const auto now = view_.job(target.ns, target.name);
    if (!now || !now->job->state().overrides)
      return exchange.send(200, dumped(success_json()) + "\n");
    return exchange.send(200, dumped(overrides_json(*now->job->state().overrides)) + "\n");
  });
}

}  // namespace muster::api
