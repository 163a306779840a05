#include "api/view/render/waiting.hpp"

#include "api/view/render/misfits.hpp"
#include "core/queue/queue.hpp"
#include "core/spec/values/quantity.hpp"

#include <map>
#include <string>

namespace muster::api {
namespace {

std::string_view why_queued(const core::Slots::QueueWait& wait) {
  using Why = core::Slots::QueueWait::Why;
  switch (wait.why) {
    case Why::limit:
      return wait.per_user ? "user_limit" : "queue_limit";
    case Why::no_node:
      return "queue_nodes";
    case Why::no_queue:
    case Why::not_open:
    case Why::time_limit:
      break;
  }
  return "queue";
}

// As in a manifest: {"cpu":"500m","memory":"2Gi","nvidia.com/gpu":"1"}.
OrderedJson requests_of(const core::Amounts& amounts) {
  OrderedJson out = OrderedJson::object();
  if (amounts.cpu_millis > 0)
    out["cpu"] = core::canonical_quantity(std::to_string(amounts.cpu_millis) + "m");
  if (amounts.memory_bytes > 0)
    out["memory"] = core::canonical_quantity(std::to_string(amounts.memory_bytes));
  for (const auto& [name, count] : amounts.named)
    if (count > 0) out[name] = std::to_string(count);
  return out;
}

OrderedJson demand_item(const View& view, const core::Job& job, core::Steps steps, uint64_t pods) {
  const core::Demand demand = demand_with(job, steps);
  const core::JobMeta& meta = job.object().meta;
  OrderedJson item = {{"namespace", meta.ns},
                      {"job", meta.name},
                      {"queue", core::queue_of(core::placed_object(job)->meta.annotations)},
                      {"pods", pods},
                      {"waitsFor", waits_for(view, job)},
                      {"requests", requests_of(demand.amounts)}};
  if (!demand.node_selector.empty()) item["nodeSelector"] = demand.node_selector;
  if (!demand.node_name.empty()) item["nodeName"] = demand.node_name;
  if (demand.time_limit_s) item["timeLimitSeconds"] = *demand.time_limit_s;
  if (demand.gang) item["gang"] = true;
  return item;
}

}  // namespace

std::string_view waits_for(const View& view, const core::Job& job) {
  if (job.on_hold()) return "hold";
  if (job.gated()) return "scheduling_gate";
  const core::Slots::QueueWait* const queued = view.queue_wait(job.id());
  return queued != nullptr ? why_queued(*queued) : "slots";
}

OrderedJson demand_items(const View& view, const Viewer& viewer) {
  OrderedJson items = OrderedJson::array();
  view.jobs().each_active([&](const core::Job& job) {
    if (!viewer.owns(job.object().meta)) return;
    std::map<core::Steps, uint64_t> pods;
    for (const PodKey& key : job.pending()) {
      const core::Pod* const pod = job.pod(key);
      if (pod != nullptr && !pod->stopping_at) ++pods[pod->steps];
    }
    for (const auto& [steps, count] : pods) items.push_back(demand_item(view, job, steps, count));
  });
  return items;
}

}  // namespace muster::api
