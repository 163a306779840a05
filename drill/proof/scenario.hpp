// Scenario: what a drill does to a cluster, and the schedule derived from it by a seed. Pure.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/text/json.hpp"
#include "drill/proof/canary.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli::drill {

enum class Fault {
  coordinator_kill,
  coordinator_freeze,
  agent_kill,
  agent_freeze,
  keeper_kill,
  node_loss,
  partition,
  disk_full,
  clock_jump,
  upgrade,
  restore,
  takeover,
  leader_freeze,
  leader_cut,
  store_loss,
};
// Also the name of its scenario: "coordinator-kill".
const char* name(Fault fault);

struct Scenario {
  const char* name;
  const char* what;
  const char* needs;          // beyond a cluster; empty: nothing
  const char* typical;        // duration with --local and one fault
  std::vector<Fault> faults;  // what it injects
};
const std::vector<Scenario>& scenarios();
// nullptr: no such scenario.
const Scenario* find_scenario(std::string_view name);

// Whether the fault may end pods on its node or get them replaced.
bool disrupts(Fault fault);

// Whether it hits a node's daemons rather than the coordinator.
bool hits_node(Fault fault);
// Whether it hits the one that leads of several coordinators, or the store of these.
bool hits_lead(Fault fault);
// Whether it lasts until its node is lost.
bool waits_for_loss(Fault fault);
// Why the fault is not possible in a running cluster; nullptr: it is possible.
const char* only_local(Fault fault);

// One fault of a schedule.
struct Step {
  Fault fault = Fault::coordinator_kill;
  uint32_t at_ends = 0;  // once this many attempts have ended, according to the witnesses
  Millis delay_ms = 0;   // and this much later
  uint32_t node = 0;     // which node is hit, counted from 0; for faults that hit a node
  Millis hold_ms = 0;    // how long it lasts, as far as the drill controls it
  bool operator==(const Step&) const = default;
};

constexpr uint32_t kTimesMax = 10'000, kNodesMax = 64, kCoordinatorsMax = 7;

struct Plan {
  std::string scenario;
  uint64_t seed = 1;
  uint32_t times = 1;  // faults in each round
  uint32_t nodes = 3;
  uint32_t coordinators = 1;  // of the scratch cluster
  Millis for_ms = 0;          // repeat rounds for this long; 0: one round
  Canary canary;
  std::vector<Step> steps;  // of the first round
  bool operator==(const Plan&) const = default;
};

// The faults of a round, in the order of injection. `grace_ms`: the cluster's node grace.
std::vector<Step> schedule(const Scenario& scenario, const Plan& plan, uint32_t round,
                           Millis grace_ms);

Json to_json(const Plan& plan);
// Reads the plan from an earlier drill's report; invalid: names the wrong member.
Result<Plan> plan_of(const Json& report);

}  // namespace muster::cli::drill
