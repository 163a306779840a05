#include "api/view/render/history_json.hpp"

#include "api/view/render/pod_runs.hpp"
#include "core/job/fold/text.hpp"

namespace muster::api {
namespace {

double to_seconds(int64_t ms) {
  return static_cast<double>(ms) / 1e3;
}

}  // namespace

OrderedJson history_json(const core::HistoryEntry& entry) {
  OrderedJson out;
  out["id"] = std::to_string(entry.id);
  out["namespace"] = entry.ns;
  out["name"] = entry.name;
  out["uid"] = entry.uid;
  if (entry.owner) {
    out["user"] = entry.user;
    out["userId"] = *entry.owner;
    out["groupId"] = entry.group;
  }
  out["queue"] = entry.queue;
  out["command"] = entry.command;
  out["state"] = core::name(entry.state);
  if (!entry.reason.empty()) out["reason"] = entry.reason;
  if (!entry.message.empty()) out["message"] = entry.message;
  if (entry.removal != core::Removal::none) out["removal"] = core::name(entry.removal);
  out["created"] = core::instant_text(entry.created_ms);
  if (entry.started) {
    out["started"] = core::instant_text(*entry.started);
    out["waitedSeconds"] = to_seconds(entry.waited_ms);
  }
  if (entry.ended) out["ended"] = core::instant_text(*entry.ended);
  if (entry.removed) out["removed"] = core::instant_text(*entry.removed);
  out["indexed"] = entry.indexed;
  if (!entry.tasks.empty()) out["tasks"] = entry.tasks;
  out["indexes"] = entry.indexes;
  out["succeeded"] = entry.succeeded;
  out["failedIndexes"] = entry.failed_indexes;
  out["cancelledIndexes"] = entry.cancelled_indexes;
  out["attempts"] = entry.attempts;
  out["failedAttempts"] = entry.failed_attempts;
  if (entry.used.known()) put_usage(out["usage"], entry.used);
  out["ranSeconds"] = to_seconds(entry.ran_ms);
  out["cpuHeldSeconds"] = to_seconds(entry.cpu_held_ms());
  OrderedJson requests = OrderedJson::object();
  if (entry.requested.cpu_millis > 0) requests["cpuMillis"] = entry.requested.cpu_millis;
  if (entry.requested.memory_bytes > 0) requests["memoryBytes"] = entry.requested.memory_bytes;
  for (const auto& [name, count] : entry.requested.named) requests[name] = count;
  out["requests"] = std::move(requests);
  return out;
}

OrderedJson sum_json(const std::vector<core::ReportColumn>& columns,
                     const core::UsageReport::Key& key, const core::UsageSum& sum) {
  OrderedJson out;
  OrderedJson& by = out["by"] = OrderedJson::object();
  for (size_t i = 0; i < columns.size(); ++i) by[std::string(core::name(columns[i]))] = key[i];
  out["jobs"] = sum.jobs;
  out["complete"] = sum.complete;
  out["failed"] = sum.failed;
  out["cancelled"] = sum.cancelled;
  out["deleted"] = sum.deleted;
  out["indexes"] = sum.indexes;
  out["succeeded"] = sum.succeeded;
  out["failedIndexes"] = sum.failed_indexes;
  out["cancelledIndexes"] = sum.cancelled_indexes;
  out["attempts"] = sum.attempts;
  out["failedAttempts"] = sum.failed_attempts;
  put_usage(out["usage"], sum.used);
  out["ranSeconds"] = to_seconds(sum.ran_ms);
  out["cpuHeldSeconds"] = to_seconds(sum.cpu_held_ms);
  OrderedJson held = OrderedJson::object();
  for (const auto& [name, ms] : sum.held_ms) held[name] = to_seconds(ms);
  out["heldSeconds"] = std::move(held);
  out["started"] = sum.started;
  out["waitedSeconds"] = to_seconds(sum.waited_ms);
  return out;
}

}  // namespace muster::api
