// Survey: what a drill finds in a running cluster before it asks: the nodes it may use, the daemons
// it would hit, and whose work would be hurt.
#pragma once

#include "cli/client/http.hpp"
#include "cli/drill/reach.hpp"
#include "cli/drill/scenario.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::cli::drill {

// The namespace that a drill keeps to, and the label of the nodes that it uses in a running
// cluster.
inline constexpr char kDrillNamespace[] = "muster-drill";
inline constexpr char kDrillLabel[] = "muster.dev/drill";

struct Survey {
  std::vector<DrillNode> nodes;             // with the label, by name; reached, if faults hit nodes
  size_t ready = 0;                         // of them
  std::string coordinator;                  // "pid 1, …"; empty: it is not hit
  std::map<std::string, uint64_t> running;  // other people's pods on these nodes, by namespace
  uint64_t jobs = 0;                        // other people's unfinished jobs; for a restore
  std::vector<Fault> faults;                // of the scenario: those that are possible
  std::vector<std::string> left_out;        // the others, each with its reason
};

// Looks at labels only. not_found, unavailable: no node is labeled or Ready.
Result<Survey> survey_nodes(ApiClient& client);
// The rest. unavailable: says which node or daemon cannot be hit, and what would be needed.
Status survey_daemons(ApiClient& client, const Scenario& scenario, const std::string& pid_file,
                      const Reach& reach, Survey& survey);

// The plan that the user is asked to confirm, line by line.
std::vector<std::string> plan_lines(const Survey& survey, const Hooks& hooks,
                                    const std::string& witness_dir);

}  // namespace muster::cli::drill
