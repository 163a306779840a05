// PoolReport: what `muster allocate` tells others about its pool, in the config map
// muster-allocate-POOL, and what others read there.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"

#include <string>
#include <vector>

namespace muster::cli {

// An allocation that has not ended, as people see it.
struct PoolAllocation {
  std::string id;
  std::string state;    // Queued, Starting, Running, Idle, Silent or Leaving
  std::string node;     // empty: it has not registered yet
  Millis since_ms = 0;  // wall clock; of that state, as far as it is known
  bool operator==(const PoolAllocation&) const = default;
};

struct PoolReport {
  std::string ns, pool;
  std::string engine;                       // slurm, flux or pbs
  std::vector<PoolAllocation> allocations;  // that have not ended
  std::string standing;                     // what it asks for, or why it does not, for people
  Millis seen_ms = 0;                       // when the pool was last looked at, wall clock
};

// A report is renewed at least this often, unless nobody looks after the pool any more.
inline constexpr Millis kPoolReportEveryMs = 60'000;

// Its part of the config map's data.
Json data_of(const PoolReport& report);
// What a config map says; absent parts are empty.
PoolReport pool_report_in(const Json& config_map);

// Of all pools in the namespace that the caller may see, by name; empty: in all namespaces.
Result<std::vector<PoolReport>> pool_reports(ApiClient& client, const std::string& ns);

// "pool hpc (slurm): 2 queued, 1 with a node; 40 pods wait; 2 nodes for them are on the way"
std::string pool_line(const PoolReport& report, Millis now);
// Whether nobody has looked after the pool for a while.
bool is_stale(const PoolReport& report, Millis now);

inline constexpr char kPoolSeen[] = "seen";                  // in the data: PoolReport::seen_ms
inline constexpr char kPoolLabel[] = "muster.dev/allocate";  // of the config map: the pool

}  // namespace muster::cli
