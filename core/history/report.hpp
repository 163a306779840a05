// UsageReport: what jobs have used, summed by user, group, queue and other columns.
//
// A job counts in the span in which it ended, with all that it used; one that has not ended counts
// now, with what its attempts have used that are over. So each job counts once, and the spans of a
// report add up to those of a longer one.
#pragma once

#include "core/history/entry.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

enum class ReportColumn : uint8_t { user, group, queue, ns, name, state, span };

// "user", "group", "queue", "namespace", "name", "state", "span"; nothing for any other text.
std::optional<ReportColumn> report_column(std::string_view name);
std::string_view name(ReportColumn column);

struct UsageSum {
  uint64_t jobs = 0;
  // Of these; the others have not ended.
  uint64_t complete = 0, failed = 0, cancelled = 0, deleted = 0;
  uint64_t indexes = 0, succeeded = 0, failed_indexes = 0, cancelled_indexes = 0;
  uint64_t attempts = 0, failed_attempts = 0;
  Usage used{};  // CPU times in total, the peak of the largest
  Millis ran_ms = 0;
  int64_t cpu_held_ms = 0;                   // HistoryEntry::cpu_held_ms
  std::map<std::string, int64_t> held_ms{};  // of named resources, likewise
  uint64_t started = 0;                      // jobs of which a process has started
  Millis waited_ms = 0;                      // by these, in total
  bool operator==(const UsageSum&) const = default;

  void add(const HistoryEntry& entry);
};

class UsageReport {
 public:
  // The value of each column, as text; users and groups without a name as numbers, spans by their
  // position.
  using Key = std::vector<std::string>;

  // `bounds` divide the time into spans: bounds[i] ≤ span i < bounds[i + 1]. At least two, rising.
  // What is outside counts nowhere.
  UsageReport(std::vector<ReportColumn> columns, std::vector<Millis> bounds, Millis now)
      : columns_(std::move(columns)), bounds_(std::move(bounds)), now_(now) {}

  void add(const HistoryEntry& entry);
  const std::map<Key, UsageSum>& sums() const { return sums_; }

 private:
  std::string text_of(ReportColumn column, const HistoryEntry& entry, size_t span) const;

  std::vector<ReportColumn> columns_;
  std::vector<Millis> bounds_;
  Millis now_;
  std::map<Key, UsageSum> sums_;
};

}  // namespace muster::core
