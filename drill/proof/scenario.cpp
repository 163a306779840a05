#include "drill/proof/scenario.hpp"

#include "client/terminal/json.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr Millis kDelayMax = 200;  // between the end that triggers a fault and the fault

constexpr Fault kAll[] = {Fault::coordinator_kill, Fault::coordinator_freeze,
                          Fault::agent_kill,       Fault::agent_freeze,
                          Fault::keeper_kill,      Fault::node_loss,
                          Fault::partition,        Fault::disk_full,
                          Fault::clock_jump,       Fault::upgrade,
                          Fault::restore,          Fault::takeover,
                          Fault::leader_freeze,    Fault::leader_cut,
                          Fault::store_loss};

Millis hold_of(Fault fault, Millis grace_ms, uint64_t chance) {
  switch (fault) {
    case Fault::coordinator_freeze:  // a frozen coordinator declares no node lost
    case Fault::agent_freeze:        // until the node is lost and its pods have been replaced
    case Fault::node_loss:
    case Fault::partition:
      return grace_ms + 1'000;
    case Fault::coordinator_kill:
    case Fault::agent_kill:
    case Fault::keeper_kill:
    case Fault::disk_full:
      return static_cast<Millis>(chance % 300);
    case Fault::clock_jump:
      return 500;
    case Fault::upgrade:
    case Fault::restore:
    case Fault::leader_freeze:  // beyond the time until another one serves
    case Fault::leader_cut:
      return 1'000;
    case Fault::takeover:
      return 0;
    case Fault::store_loss:  // longer than a lease
      return 10'000;
  }
  return 0;
}

}  // namespace

const char* name(Fault fault) {
  switch (fault) {
    case Fault::coordinator_kill:
      return "coordinator-kill";
    case Fault::coordinator_freeze:
      return "coordinator-freeze";
    case Fault::agent_kill:
      return "agent-kill";
    case Fault::agent_freeze:
      return "agent-freeze";
    case Fault::keeper_kill:
      return "keeper-kill";
    case Fault::node_loss:
      return "node-loss";
    case Fault::partition:
      return "partition";
    case Fault::disk_full:
      return "disk-full";
    case Fault::clock_jump:
      return "clock-jump";
    case Fault::upgrade:
      return "upgrade";
    case Fault::restore:
      return "restore";
    case Fault::takeover:
      return "takeover";
    case Fault::leader_freeze:
      return "leader-freeze";
    case Fault::leader_cut:
      return "leader-cut";
    case Fault::store_loss:
      return "store-loss";
  }
  return "";
}

namespace {

std::vector<Scenario> of_one_coordinator() {
  return {
      {"coordinator-kill",
       "SIGKILL the coordinator; its supervisor restarts it",
       "--local or --pid-file",
       "10 s",
       {Fault::coordinator_kill}},
      {"coordinator-freeze",
       "SIGSTOP the coordinator beyond the node grace, then SIGCONT",
       "--local or --pid-file",
       "15 s",
       {Fault::coordinator_freeze}},
      {"agent-kill",
       "SIGKILL an agent and restart it; its pods keep running",
       "--local or labeled nodes",
       "10 s",
       {Fault::agent_kill}},
      {"agent-freeze",
       "SIGSTOP an agent until its node is lost, then SIGCONT",
       "--local or labeled nodes",
       "15 s",
       {Fault::agent_freeze}},
      {"keeper-kill",
       "SIGKILL a keeper, the parent of a node's pods",
       "--local or labeled nodes",
       "10 s",
       {Fault::keeper_kill}},
      {"node-loss",
       "SIGKILL agent, keeper and every pod of a node; it comes back after its grace",
       "--local or labeled nodes",
       "15 s",
       {Fault::node_loss}},
      {"partition",
       "Hold all bytes between a node and the coordinator until the node is lost",
       "--local, or labeled nodes with nft",
       "15 s",
       {Fault::partition}},
      {"disk-full",
       "The coordinator's files reach their size limit; then there is room again",
       "--local or --pid-file",
       "10 s",
       {Fault::disk_full}},
      {"clock-jump",
       "The coordinator's wall clock jumps by an hour, forward and back",
       "--local, libfaketime",
       "10 s",
       {Fault::clock_jump}},
      {"upgrade",
       "Restart coordinator and agents with another muster, then with this one",
       "--binary, and --local or --switch",
       "10 s",
       {Fault::upgrade}},
      {"restore",
       "Back up, go on, lose the state, restore the backup",
       "--local or --restore",
       "15 s",
       {Fault::restore}},
      {"storm",
       "Kill and freeze coordinator, agents, keepers and nodes in a seeded order",
       "--local, or --pid-file and labeled nodes",
       "--times, --for",
       {Fault::coordinator_kill, Fault::coordinator_freeze, Fault::agent_kill, Fault::agent_freeze,
        Fault::keeper_kill, Fault::node_loss, Fault::partition}},
  };
}

std::vector<Scenario> of_several_coordinators() {
  return {
      {"takeover",
       "SIGKILL the leader of several coordinators; another one takes over",
       "--local with etcd, or --pid-file",
       "20 s",
       {Fault::takeover}},
      {"leader-freeze",
       "SIGSTOP the leader until another one serves, then SIGCONT",
       "--local with etcd, or --pid-file",
       "20 s",
       {Fault::leader_freeze}},
      {"leader-cut",
       "Drop all bytes between the leader, the other coordinators and etcd",
       "--local with etcd",
       "20 s",
       {Fault::leader_cut}},
      {"store-loss",
       "SIGSTOP etcd; the leader goes on with its replicas",
       "--local with etcd",
       "20 s",
       {Fault::store_loss}},
  };
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> kScenarios = [] {
    std::vector<Scenario> all = of_one_coordinator();
    for (Scenario& scenario : of_several_coordinators()) all.push_back(std::move(scenario));
    return all;
  }();
  return kScenarios;
}

const Scenario* find_scenario(std::string_view name) {
  for (const Scenario& scenario : scenarios())
    if (scenario.name == name) return &scenario;
  return nullptr;
}

bool disrupts(Fault fault) {
  return fault == Fault::agent_freeze || fault == Fault::keeper_kill || fault == Fault::node_loss ||
         fault == Fault::partition;
}

bool hits_node(Fault fault) {
  return fault == Fault::agent_kill || disrupts(fault);
}

bool hits_lead(Fault fault) {
  return fault == Fault::takeover || fault == Fault::leader_freeze || fault == Fault::leader_cut ||
         fault == Fault::store_loss;
}

bool waits_for_loss(Fault fault) {
  return fault == Fault::agent_freeze || fault == Fault::node_loss || fault == Fault::partition;
}

const char* only_local(Fault fault) {
  switch (fault) {
    case Fault::clock_jump:
      return "the wall clock would jump for everything on the coordinator's machine";
    case Fault::leader_cut:
      return "cut the leader off by hand: on its machine, drop what goes to and comes from the "
             "other coordinators' --peers ports and etcd with nft, while `muster drill run "
             "agent-kill` watches";
    case Fault::store_loss:
      return "stop etcd by hand, `systemctl stop etcd` on its machines, while `muster drill run "
             "agent-kill` watches";
    default:
      return nullptr;
  }
}

std::vector<Step> schedule(const Scenario& scenario, const Plan& plan, uint32_t round,
                           Millis grace_ms) {
  std::mt19937_64 random(plan.seed + uint64_t{round} * 1'000'003);
  // Not in the last third, so that no fault hits a finished job.
  const uint32_t last = std::max(1u, expected_ends(plan.canary) * 2 / 3);
  std::vector<Step> steps(plan.times);
  for (Step& step : steps) {
    step.fault = scenario.faults[random() % scenario.faults.size()];
    step.at_ends = static_cast<uint32_t>(random() % last);
    step.delay_ms = static_cast<Millis>(random() % kDelayMax);
    step.node = static_cast<uint32_t>(random() % plan.nodes);
    step.hold_ms = hold_of(step.fault, grace_ms, random());
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.at_ends < b.at_ends; });
  return steps;
}

Json to_json(const Plan& plan) {
  Json steps = Json::array();
  for (const Step& step : plan.steps)
    steps.push_back({{"fault", name(step.fault)},
                     {"atEnds", step.at_ends},
                     {"delayMs", step.delay_ms},
                     {"node", step.node},
                     {"holdMs", step.hold_ms}});
  return {{"scenario", plan.scenario},
          {"seed", plan.seed},
          {"times", plan.times},
          {"nodes", plan.nodes},
          {"coordinators", plan.coordinators},
          {"forMs", plan.for_ms},
          {"canary",
           {{"indexes", plan.canary.indexes},
            {"parallelism", plan.canary.parallelism},
            {"shortMs", plan.canary.short_ms},
            {"longMs", plan.canary.long_ms}}},
          {"steps", std::move(steps)}};
}

Result<Plan> plan_of(const Json& report) {
  const Json& json = at(report, {"plan"});
  if (!json.is_object()) return invalid("holds no plan; the JSON report of a drill has one");
  std::string wrong;
  const auto number = [&wrong](const Json& from, const char* key, int64_t low, int64_t high) {
    const Json& value = at(from, {key});
    if (value.is_number_integer() && value >= low && value <= high) return value.get<int64_t>();
    if (wrong.empty())
      wrong = std::string("plan: ") + key + ": must be a whole number, " + std::to_string(low) +
              " to " + std::to_string(high);
    return low;
  };
  constexpr Millis kSpanMax = 3'600'000;
  Plan plan;
  plan.scenario = text_at(json, {"scenario"});
  if (find_scenario(plan.scenario) == nullptr)
    return invalid("plan: there is no scenario `" + plan.scenario + "`");
  plan.seed = static_cast<uint64_t>(number(json, "seed", 0, INT64_MAX));
  plan.times = static_cast<uint32_t>(number(json, "times", 1, kTimesMax));
  plan.nodes = static_cast<uint32_t>(number(json, "nodes", 1, kNodesMax));
  if (json.contains("coordinators"))  // reports of earlier versions have one
    plan.coordinators = static_cast<uint32_t>(number(json, "coordinators", 1, kCoordinatorsMax));
  plan.for_ms = number(json, "forMs", 0, INT64_MAX);
  const Json& canary = at(json, {"canary"});
  plan.canary.indexes = static_cast<uint32_t>(number(canary, "indexes", kCanaryMin, kCanaryMax));
  plan.canary.parallelism = static_cast<uint32_t>(number(canary, "parallelism", 1, kCanaryMax));
  plan.canary.short_ms = number(canary, "shortMs", 1, kSpanMax);
  plan.canary.long_ms = number(canary, "longMs", 1, kSpanMax);
  plan.canary.seed = plan.seed;
  const Json& steps = at(json, {"steps"});
  if (!steps.is_array() || steps.size() != plan.times)
    return invalid("plan: steps: must be a list of " + std::to_string(plan.times));
  for (const Json& one : steps) {
    Step step;
    const std::string fault = text_at(one, {"fault"});
    const auto known = std::find_if(std::begin(kAll), std::end(kAll),
                                    [&fault](Fault f) { return name(f) == fault; });
    if (known == std::end(kAll)) return invalid("plan: steps: there is no fault `" + fault + "`");
    step.fault = *known;
    step.at_ends = static_cast<uint32_t>(number(one, "atEnds", 0, INT32_MAX));
    step.delay_ms = number(one, "delayMs", 0, kSpanMax);
    step.node = static_cast<uint32_t>(number(one, "node", 0, plan.nodes - 1));
    step.hold_ms = number(one, "holdMs", 0, kSpanMax);
    plan.steps.push_back(step);
  }
  if (!wrong.empty()) return invalid(wrong);
  return plan;
}

}  // namespace muster::cli::drill
