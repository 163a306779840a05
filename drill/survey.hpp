// Survey: what a drill finds in a running cluster before it asks for confirmation: the nodes it may
// use, the daemons it would hit, and whose work it would disrupt.
#pragma once

#include "client/connect/http.hpp"
#include "drill/process/reach.hpp"
#include "drill/proof/scenario.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::cli::drill {

// In a running cluster, the drill's only namespace and the label of the nodes that it uses.
inline constexpr char kDrillNamespace[] = "muster-drill";
inline constexpr char kDrillLabel[] = "muster.dev/drill";

struct Survey {
  std::vector<DrillNode> nodes;             // labeled, by name; each reached if faults hit nodes
  size_t ready = 0;                         // how many of them are Ready
  std::string coordinator;                  // "pid 1, …"; empty: not hit
  std::map<std::string, uint64_t> running;  // other people's pods on these nodes, by namespace
  uint64_t jobs = 0;                        // other people's unfinished jobs; for a restore
  std::vector<Fault> faults;                // those of the scenario that are possible
  std::vector<std::string> left_out;        // the others, each with the reason
};

// Reads labels only. not_found, unavailable: no node is labeled or Ready.
Result<Survey> survey_nodes(ApiClient& client);
// Fills in the rest. unavailable: says which node or daemon cannot be hit, and what is needed.
Status survey_daemons(ApiClient& client, const Scenario& scenario, const std::string& pid_file,
                      const Reach& reach, Survey& survey);

// The plan that the user is asked to confirm, line by line.
std::vector<std::string> plan_lines(const Survey& survey, const Hooks& hooks,
                                    const std::string& witness_dir);

}  // namespace muster::cli::drill
