#include "api/view/render/pod_runs.hpp"

#include "base/text/exit_text.hpp"
#include "core/job/fold/text.hpp"

namespace muster::api {
namespace {

std::string name_of(const core::PodTemplate& spec, size_t container) {
  const size_t inits = spec.init_containers.size();
  if (container < inits) return spec.init_containers[container].name;
  return container - inits < spec.containers.size() ? spec.containers[container - inits].name : "?";
}

}  // namespace

void put_usage(OrderedJson& out, const core::Usage& used) {
  out["userSeconds"] = static_cast<double>(used.user_us) / 1e6;
  out["systemSeconds"] = static_cast<double>(used.system_us) / 1e6;
  out["peakMemoryBytes"] = used.peak_bytes;
}

OrderedJson runs_json(const core::PodTemplate& spec, const core::Pod& pod) {
  OrderedJson out = OrderedJson::array();
  for (const core::RunEnd& run : pod.runs) {
    OrderedJson one;
    one["container"] = name_of(spec, run.container);
    one["run"] = run.end.restarts;
    one["cause"] = core::name(run.end.cause);
    one["exitCode"] = run.end.exit_code;
    if (run.end.signal != 0) one["signal"] = run.end.signal;
    if (run.end.started_at) one["started"] = core::instant_text(*run.end.started_at);
    one["ended"] = core::instant_text(run.end.ended_at);
    if (run.used.known()) put_usage(one["usage"], run.used);
    out.push_back(std::move(one));
  }
  return out;
}

std::string runs_text(const core::PodTemplate& spec, const core::Pod& pod) {
  const bool one = spec.init_containers.size() + spec.containers.size() == 1;
  std::string text;
  for (const core::RunEnd& run : pod.runs) {
    if (!text.empty()) text += ", ";
    if (!one) text += name_of(spec, run.container) + " ";
    text += exit_text(run.end.exit_code, run.end.signal);
    if (run.end.cause == core::EndCause::out_of_memory) text += " (OOMKilled)";
  }
  return text;
}

}  // namespace muster::api
