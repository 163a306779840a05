// History: entries of jobs as the coordinator keeps them (HistoryEntry; docs/api.md), as cells of a
// table and as tab-separated lines for scripts:
//
//   Id Namespace Name Uid User Group Queue State Reason Removal Created Started Ended Removed
//   Waited Elapsed Indexes Succeeded Failedindexes Cancelledindexes Attempts Failedattempts
//   Usertime Systemtime Peakmemory Runtime Cpuheld Cpurequest Memoryrequest Command
//
// Instants are in local time with the zone, and empty if they have not come. Waited, Elapsed and
// the columns in -time are in seconds with milliseconds; Runtime is the sum of all attempts' run
// times, and Cpuheld these multiplied by the CPUs that a pod requests, 1 if it requests none.
// Memory is in bytes and Cpurequest in CPUs; 0 if there is none. These columns are stable; others
// may be appended.
#pragma once

#include "base/clock.hpp"
#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

// /apis/muster.dev/v1[/namespaces/NS]/WHAT; an empty `ns` means all namespaces.
std::string history_path(const std::string& ns, const std::string& what);

// Lists come in pages: calls `take` for each item of all pages, and `see` for the metadata of each
// page. `path` has a query.
Status each_item(
    ApiClient& client, const std::string& path, const std::function<void(const Json&)>& take,
    const std::function<void(const Json&)>& see = [](const Json&) {});

// A number of an entry or a sum; 0: it has none.
double fraction_at(const Json& json, std::initializer_list<const char*> keys);
// With three digits after the point.
std::string decimals(double number);
// An instant of an entry in local time; empty: it has not come.
std::string instant_at(const Json& entry, const char* field);
// "-" for an empty text.
std::string or_dash(std::string text);
// CPU time, in user mode and in the kernel.
double cpu_seconds_used(const Json& entry);

// The name of a group of this machine; its number if there is none.
std::string group_text(int64_t gid);

// Seconds between two instants of an entry, `now` standing for one that has not come; nullopt: it
// has not started.
std::optional<double> elapsed_seconds(const Json& entry, Millis now);

std::vector<std::string> history_header(bool wide, bool namespaces);
std::vector<std::string> history_cells(const Json& entry, Millis now, bool wide, bool namespaces);

std::string history_tsv_header();
// Ends with a line break.
std::string history_tsv_line(const Json& entry, Millis now);

// The words that entries can be sorted by.
const std::vector<std::string>& history_sort_words();

// Keeps the last entries in the order of one of these words, at most `limit` (0: all), in bounded
// memory. Entries that are equal in it are in the order in which the jobs were created.
class LastEntries {
 public:
  LastEntries(std::string by, bool reverse, size_t limit, Millis now)
      : by_(std::move(by)), reverse_(reverse), limit_(limit), now_(now) {}
  void add(const Json& entry);
  // Others that would not have been kept.
  void add_unseen(size_t count) { seen_ += count; }
  size_t seen() const { return seen_; }
  // In order or, with `reverse`, the last one first.
  std::vector<Json> take();

 private:
  struct One {
    double number = 0;
    std::string text;
    int64_t id = 0;
    Json entry;
  };
  static bool before(const One& a, const One& b);
  void drop();

  std::string by_;
  bool reverse_;
  size_t limit_;
  Millis now_;
  size_t seen_ = 0;
  std::vector<One> kept_;
};

}  // namespace muster::cli
