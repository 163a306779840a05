#include "api/view/render/attempt_json.hpp"

#include "api/http/url.hpp"
#include "api/view/render/pod_runs.hpp"
#include "core/job/facts/pod_conditions.hpp"
#include "core/job/fold/text.hpp"
#include "core/pod_name.hpp"
#include "core/spec/rules/retry_steps.hpp"

namespace muster::api {
namespace {

std::string token_text(const core::AttemptCursor& next) {
  return std::to_string(next.sequence) + "." + std::to_string(next.skip);
}

// `closed_ms`: when it was closed, if it has been.
OrderedJson attempt_json(const View& view, const AttemptOf& job, const core::Pod& pod,
                         std::optional<Millis> closed_ms) {
  OrderedJson out;
  out[job.indexed ? "index" : "number"] = pod.key.index;
  out["attempt"] = core::shown_attempt(job.indexed, pod.key);
  out["pod"] = core::pod_name(job.name, job.uid, job.indexed, pod.key);
  out["podUID"] = core::pod_uid(job.uid, pod.key);
  out["node"] = view.node_name(pod.node);
  if (pod.ended) {
    out["cause"] = core::name(pod.end.cause);
    out["exitCode"] = pod.end.exit_code;
  }
  if (pod.end.signal != 0) out["signal"] = pod.end.signal;
  std::string message = pod.end.message;
  for (const core::PodCondition& condition : core::pod_conditions(pod)) {
    if (condition.type != core::kDisruptionTarget || condition.status != "True") continue;
    out["disruption"] = condition.reason;
    if (message.empty() && pod.counted == core::Counted::released) message = condition.message;
  }
  if (!message.empty()) out["message"] = message;
  out["counted"] = core::name(pod.counted);
  if (pod.action != core::FailureAction::none) out["rule"] = core::name(pod.action);
  if (pod.restarts != 0) out["restarts"] = pod.restarts;
  if (job.object != nullptr) {
    if (const auto memory = core::memory_of(*job.object, pod.steps)) out["memory"] = *memory;
    if (const auto time_s = core::time_limit_of(*job.object, pod.steps))
      out["timeLimitSeconds"] = *time_s;
  }
  out["created"] = core::instant_text(pod.created_ms);
  if (pod.bound()) out["bound"] = core::instant_text(pod.bound_ms);
  if (pod.started_at) out["started"] = core::instant_text(*pod.started_at);
  if (pod.stopping_at) out["stopping"] = core::instant_text(*pod.stopping_at);
  if (pod.ended) out["ended"] = core::instant_text(pod.end.ended_at);
  if (closed_ms) out["recorded"] = core::instant_text(*closed_ms);
  if (pod.end.used.known()) put_usage(out["usage"], pod.end.used);
  if (!pod.runs.empty() && job.pod != nullptr) out["runs"] = runs_json(*job.pod, pod);
  return out;
}

}  // namespace

std::optional<core::AttemptCursor> attempt_token(const std::string& text) {
  const size_t dot = text.find('.');
  if (dot == std::string::npos) return std::nullopt;
  auto sequence = whole_number<uint64_t>(std::string_view(text).substr(0, dot));
  auto skip = whole_number<uint32_t>(std::string_view(text).substr(dot + 1));
  if (!sequence || !skip) return std::nullopt;
  return core::AttemptCursor{*sequence, *skip};
}

OrderedJson attempt_list(const View& view, const AttemptOf& job, const core::AttemptPage& page) {
  OrderedJson list;
  list["kind"] = "AttemptList";
  list["apiVersion"] = "muster.dev/v1";
  list["metadata"] = OrderedJson::object();
  if (page.next) list["metadata"]["continue"] = token_text(*page.next);
  list["metadata"]["next"] = token_text(page.end);
  list["metadata"]["jobCreated"] = core::instant_text(job.created_ms);
  list["items"] = OrderedJson::array();
  for (size_t i = 0; i < page.attempts.size(); ++i)
    list["items"].push_back(
        attempt_json(view, job, page.attempts[i],
                     i < page.closed_ms.size() ? std::optional(page.closed_ms[i]) : std::nullopt));
  return list;
}

}  // namespace muster::api
