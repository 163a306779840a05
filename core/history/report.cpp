#include "core/history/report.hpp"

#include <algorithm>
#include <limits>

namespace muster::core {
namespace {

constexpr int64_t kHeldMax = std::numeric_limits<int64_t>::max();

// What users request is bounded, but not by what there is.
void add_held(int64_t& sum, int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = kHeldMax;
}

struct ColumnName {
  ReportColumn column;
  std::string_view name;
};
constexpr ColumnName kColumnNames[] = {
    {ReportColumn::user, "user"},    {ReportColumn::group, "group"}, {ReportColumn::queue, "queue"},
    {ReportColumn::ns, "namespace"}, {ReportColumn::name, "name"},   {ReportColumn::state, "state"},
    {ReportColumn::span, "span"},
};

}  // namespace

std::optional<ReportColumn> report_column(std::string_view name) {
  for (const auto& [column, text] : kColumnNames)
    if (text == name) return column;
  return std::nullopt;
}

std::string_view name(ReportColumn column) {
  return std::ranges::find(kColumnNames, column, &ColumnName::column)->name;
}

void UsageSum::add(const HistoryEntry& entry) {
  ++jobs;
  complete += entry.state == PastState::complete;
  failed += entry.state == PastState::failed;
  cancelled += entry.state == PastState::cancelled;
  deleted += entry.state == PastState::deleted;
  indexes += entry.indexes;
  succeeded += entry.succeeded;
  failed_indexes += entry.failed_indexes;
  cancelled_indexes += entry.cancelled_indexes;
  attempts += entry.attempts;
  failed_attempts += entry.failed_attempts;
  used.add(entry.used);
  ran_ms += entry.ran_ms;
  add_held(cpu_held_ms, entry.cpu_held_ms());
  for (const auto& [resource, count] : entry.requested.named) {
    int64_t held = 0;
    if (__builtin_mul_overflow(count, entry.ran_ms, &held)) held = kHeldMax;
    add_held(held_ms[resource], held);
  }
  if (!entry.started) return;
  ++started;
  waited_ms += entry.waited_ms;
}

void UsageReport::add(const HistoryEntry& entry) {
  const Millis at = entry.ended.value_or(now_);
  const auto next = std::ranges::upper_bound(bounds_, at);
  if (next == bounds_.begin() || next == bounds_.end()) return;
  const auto span = static_cast<size_t>(next - bounds_.begin()) - 1;
  Key key;
  for (const ReportColumn column : columns_) key.push_back(text_of(column, entry, span));
  sums_[std::move(key)].add(entry);
}

std::string UsageReport::text_of(ReportColumn column, const HistoryEntry& entry,
                                 size_t span) const {
  switch (column) {
    case ReportColumn::user:
      return entry.user.empty() && entry.owner ? std::to_string(*entry.owner) : entry.user;
    case ReportColumn::group:
      return entry.owner ? std::to_string(entry.group) : "";
    case ReportColumn::queue:
      return entry.queue;
    case ReportColumn::ns:
      return entry.ns;
    case ReportColumn::name:
      return entry.name;
    case ReportColumn::state:
      return std::string(core::name(entry.state));
    case ReportColumn::span:
      break;
  }
  return std::to_string(span);
}

}  // namespace muster::core
