// muster drill: lists scenarios, runs them, lists earlier reports.
#include "drill/drill.hpp"

#include "base/text/nearest.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/safe_output.hpp"
#include "client/terminal/table.hpp"
#include "core/spec/values/duration.hpp"
#include "drill/drill_options.hpp"
#include "drill/proof/scenario.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace muster::cli {

int execute(const DrillOptions& options);

namespace {

int list_scenarios() {
  std::vector<std::vector<std::string>> rows{{"NAME", "WHAT IT DOES", "NEEDS", "TYPICAL"}};
  for (const drill::Scenario& scenario : drill::scenarios())
    rows.push_back({scenario.name, scenario.what, scenario.needs, scenario.typical});
  std::cout << aligned(rows, "");
  return kDone;
}

struct DrillWords {
  DrillOptions options;
  std::string spread, node_grace = core::duration_text(options.node_grace_ms),
                      restart_within = core::duration_text(options.restart_within_ms);
  std::vector<std::string> what;  // [run] SCENARIO..., or list or history alone
  bool no_baseline = false;
};

const std::set<std::string> kDrillWords{"run", "list", "history"};
// Flags that --replay and --local exclude.
const std::vector<std::string> kOfSchedule{"--times", "--seed",         "--canary",
                                           "--nodes", "--coordinators", "--for"};
const std::vector<std::string> kOfRunning{"--pid-file", "--witness-dir",    "--on-node",
                                          "--start",    "--restart-within", "--node-grace",
                                          "--switch",   "--restore"};

// What an unknown scenario may be a misspelling of.
std::vector<std::string> known_words() {
  std::vector<std::string> names(kDrillWords.begin(), kDrillWords.end());
  for (const drill::Scenario& scenario : drill::scenarios()) names.push_back(scenario.name);
  return names;
}

Judged read_drill_words(const DrillWords& w, const Given& given) {
  DrillOptions o = w.options;
  o.baseline = !w.no_baseline;
  const std::string& first = w.what.front();
  o.scenarios.assign(w.what.begin() + (kDrillWords.contains(first) ? 1 : 0), w.what.end());
  if (first == "list" || first == "history") {
    if (!o.scenarios.empty())
      return Usage{"`" + o.scenarios.front() + "`: only `muster drill run` takes a scenario"};
    o.what = first == "list" ? DrillOptions::What::list : DrillOptions::What::history;
    return o;
  }
  o.what = DrillOptions::What::run;
  if (o.scenarios.empty())
    return Usage{"run which scenario? muster drill run SCENARIO; `muster drill list` lists them"};
  for (const std::string& scenario : o.scenarios)
    if (drill::find_scenario(scenario) == nullptr)
      return Usage{"`" + scenario + "`: unknown scenario" + did_you_mean(scenario, known_words()) +
                   "; `muster drill list` lists them"};
  if (!o.replay.empty() && o.scenarios.size() > 1)
    return Usage{"--replay takes one scenario; " + std::to_string(o.scenarios.size()) +
                 " are given"};
  const auto any_given = [&given](const std::vector<std::string>& flags) {
    return std::any_of(flags.begin(), flags.end(),
                       [&given](const std::string& flag) { return given.flags.contains(flag); });
  };
  if (!o.replay.empty() && any_given(kOfSchedule))
    return Usage{"--replay has its own " + listed(kOfSchedule, " and ")};
  if (o.local && any_given(kOfRunning))
    return Usage{listed(kOfRunning, " and ") + " are for a running cluster, not for --local"};
  if (!o.local && given.flags.contains("--coordinators"))
    return Usage{"--coordinators is only for --local: a running cluster has its own"};
  if (auto wrong = read_span("--for", w.spread, o.for_ms)) return *wrong;
  if (auto wrong = read_span("--node-grace", w.node_grace, o.node_grace_ms)) return *wrong;
  if (auto wrong = read_span("--restart-within", w.restart_within, o.restart_within_ms))
    return *wrong;
  return o;
}

}  // namespace

int execute(const DrillOptions& options) {
  switch (options.what) {
    case DrillOptions::What::list:
      return list_scenarios();
    case DrillOptions::What::run:
      outlive_reader();  // it has to undo its faults
      return drill::run_drills(options);
    case DrillOptions::What::history: {
      auto table = drill::history(options.report_dir);
      if (!table) return fail(table.error());
      std::cout << *table;
      return kDone;
    }
  }
  return kUsage;
}

Verb drill_verb() {
  auto w = std::make_shared<DrillWords>();
  DrillOptions& o = w->options;
  const auto number = [](const char* flag, auto& value, const char* help, int64_t low,
                         int64_t high) {
    return FlagRow{flag, "N", help, &value, whole(low, high)};
  };
  return {
      .title = {"State", "drill", "Inject faults into a cluster and prove that nothing is lost"},
      .rows =
          {{"what", "list | [run] SCENARIO... | history",
            "list the scenarios, run them one after the other, or list the reports of "
            "earlier drills",
            &w->what, kAnything, kRequired},
           {"--local", "", "Start a scratch cluster and drill that; it is removed afterwards",
            &o.local},
           number("--times", o.times, "Number of faults (default)", 1, drill::kTimesMax),
           number("--seed", o.seed,
                  "Seed of the schedule and of the canary (default: a random one)", 0, INT64_MAX),
           number("--canary", o.canary, "Indexes of the canary, the job that is watched (default)",
                  drill::kCanaryMin, drill::kCanaryMax),
           number("--nodes", o.nodes, "Nodes of the scratch cluster (default)", 1,
                  drill::kNodesMax),
           number("--coordinators", o.coordinators,
                  "Coordinators of the scratch cluster: 2 or more for takeover, leader-freeze, "
                  "leader-cut and store-loss (default: 2 for these, else 1)",
                  1, drill::kCoordinatorsMax),
           {"--for", "T", "Repeat for this long, each time with another seed", &w->spread},
           {"--no-baseline", "", "Skip the run without faults that the canary is compared with",
            &w->no_baseline},
           {"--binary", "F", "For upgrade: executable to upgrade to", &o.binary},
           {"--pid-file", "F",
            "For a running cluster: file with the coordinator's pid, or its endpoints.json",
            &o.pid_file},
           {"--witness-dir", "D",
            "For a running cluster: directory that all nodes and this machine share",
            &o.witness_dir},
           {"--on-node", "CMD",
            "Command that runs {} on {node}, for agents of other machines: 'ssh {node} {}'",
            &o.hooks.on_node},
           {"--start", "CMD",
            "Command that starts the agent of {node} there, if no supervisor does", &o.hooks.start},
           {"--restart-within", "T", "How long a killed daemon may take to come back (default)",
            &w->restart_within},
           {"--node-grace", "T", "The running cluster's --node-grace (default)", &w->node_grace},
           {"--switch", "CMD",
            "For upgrade: command that makes a machine's daemons start from {binary}",
            &o.hooks.switch_to},
           {"--restore", "CMD",
            "For restore: command that restarts the coordinator with the state of {backup}",
            &o.hooks.restore},
           {"--yes", "", "Skip the confirmation for a running cluster", &o.yes},
           {"--replay", "F", "JSON report whose schedule is run again", &o.replay},
           {"--report", "D", "Directory of the reports (default: the current one)", &o.report_dir},
           {"-o,--output", "FORM", "Form of the summary on stdout:", &o.output,
            one_of({"table", "json"})}},
      .asks = {&o.target, ""},
      .footer =
          "Examples:\n  muster drill list\n  muster drill run coordinator-kill --local --times 20\n"
          "  muster drill run takeover --local --coordinators 2 --times 5\n"
          "  muster drill run storm --local --for 10m --report /var/tmp/drills\n"
          "  muster drill run coordinator-kill --pid-file /var/lib/muster/endpoints.json \\\n"
          "    --witness-dir /shared/drill\n"
          "  muster drill run node-loss --witness-dir /shared/drill --on-node 'ssh {node} sudo {}' "
          "\\\n    --start 'systemctl start muster-agent'\n"
          "On a running cluster, a drill uses only the namespace muster-drill and nodes labeled\n"
          "muster.dev/drill=true, and asks for confirmation first.\n"
          "Exit codes: 0 HELD, 1 BROKEN, 2 usage error, 3 INCONCLUSIVE, 130 interrupted.\n"
          "With several scenarios: 1 if one is BROKEN, else 3 if one is INCONCLUSIVE.",
      .finish = [w](const Given& given) -> Judged { return read_drill_words(*w, given); }};
}

}  // namespace muster::cli
