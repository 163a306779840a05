// Report: what jobs have used, summed by user, group, queue, period and other columns, from the
// sums that the coordinator computes page by page (UsageSum; docs/api.md). As a table, and as
// tab-separated lines for scripts: a column for each part of the key, then
//
//   Jobs Complete Failed Cancelled Deleted Indexes Succeeded Failedindexes Cancelledindexes
//   Attempts Failedattempts Usertime Systemtime Peakmemory Runtime Cpuheld Started Waited Held
//
// Times are in seconds with milliseconds, of all jobs together; Waited is the time that the Started
// jobs waited, Held what was held of named resources, in seconds: "nvidia.com/gpu=7200.000".
#pragma once

#include "base/clock.hpp"
#include "client/terminal/json.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

// Parts of the time, as wide as a day, a week from Monday, a month or a year in local time.
struct Periods {
  std::vector<Millis> bounds{};      // the last one is the end of the last period
  std::vector<std::string> names{};  // one less: "2026-12", "2026-12-01", "2026"
};
const std::vector<std::string>& period_words();
// The periods that contain `since` to `until`, cut to these; at most `most`. nullopt: too many.
std::optional<Periods> periods_of(const std::string& word, Millis since, Millis until, size_t most);
// The beginning of the period that contains this instant.
Millis period_begin(const std::string& word, Millis at_ms);

class UsageTable {
 public:
  // `columns`: parameters of the request, of which `span` stands for the periods.
  UsageTable(std::vector<std::string> columns, Periods periods, std::string period_name)
      : columns_(std::move(columns)),
        periods_(std::move(periods)),
        period_name_(std::move(period_name)) {}
  // An item of a page: adds to what earlier pages have for the same key.
  void add(const Json& item);
  bool empty() const { return sums_.empty(); }

  // With a header, and a line of totals if there are several lines.
  std::vector<std::vector<std::string>> cells(bool headers) const;
  std::string tsv(bool headers) const;
  Json json() const;

 private:
  using Key = std::vector<std::string>;
  std::vector<std::string> key_header() const;
  Key shown(const Key& key) const;

  std::vector<std::string> columns_;
  Periods periods_;
  std::string period_name_;
  std::map<Key, Json> sums_;
};

}  // namespace muster::cli
