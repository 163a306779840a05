// Cluster: the coordinator as `muster allocate` needs it, through the public API.
#pragma once

#include "base/result.hpp"
#include "cli/verbs/allocate/pool.hpp"
#include "client/connect/http.hpp"
#include "client/news/pool_report.hpp"

#include <map>
#include <string>
#include <vector>

namespace muster::cli::allocate {

// Without digits, by which texts differ that say the same of another moment.
std::string without_digits(std::string text);

// Nodes of the pool, as their Node objects and the list of their pods say.
std::map<std::string, PoolNode> nodes_of(const Json& nodes, const Json& uses);
// The items of a DemandList. `queue`: only of this one; empty: of all.
std::vector<Demand> demand_of(const Json& list, const std::string& queue);

class Cluster {
 public:
  // `ns`: of the config map that has the books.
  Cluster(ApiClient& client, std::string pool, std::string queue, std::string ns)
      : client_(client), pool_(std::move(pool)), queue_(std::move(queue)), ns_(std::move(ns)) {}

  // Sets nodes and demand.
  Status look(Look& look);

  // The address for agents on other machines; empty: there is none. With one, they need tokens.
  Result<std::string> agents_address();
  // The text of a token with which the agent of this node may join, for a week.
  Result<std::string> node_token(const std::string& node, const Json& claims);

  Status cordon(const std::string& node, bool cordoned);
  // Nothing if it is gone.
  Status forget(const std::string& node);

  // Config map muster-allocate-POOL, for the next run and for others. A write is left out if
  // nothing has changed, unless the last one is kPoolReportEveryMs old. `books` null: there is no
  // budget.
  Result<Books> books();
  Status keep(const Books* books, const PoolReport& report);
  // Nobody looks after the pool any more, and it has no allocations.
  Status remove_report(bool keeps_books);

 private:
  std::string map_path() const;

  ApiClient& client_;
  const std::string pool_, queue_, ns_;
  Json kept_;  // the data that was written last, without its time
  Millis kept_ms_ = 0;
};

}  // namespace muster::cli::allocate
