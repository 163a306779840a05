// The grammar of muster drill.
#include "base/text/nearest.hpp"
#include "cli/grammar/parser.hpp"
#include "drill/proof/scenario.hpp"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

struct DrillWords {
  std::string spread, node_grace, restart_within;
  std::vector<std::string> what;  // [run] SCENARIO..., or list or history alone
  std::string output = "table";
  std::optional<uint32_t> times, canary, nodes;
  DrillOptions options;
};

const std::set<std::string> kWords{"run", "list", "history"};

// What an unknown scenario may be a misspelling of.
std::vector<std::string> known_words() {
  std::vector<std::string> names(kWords.begin(), kWords.end());
  for (const drill::Scenario& scenario : drill::scenarios()) names.push_back(scenario.name);
  return names;
}

Judged read_drill_words(const DrillWords& w, const Target& target) {
  DrillOptions o = w.options;
  o.target = target;
  o.output = read_output(w.output);
  const std::string& first = w.what.front();
  o.scenarios.assign(w.what.begin() + (kWords.contains(first) ? 1 : 0), w.what.end());
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
    return Usage{"--replay has the schedule of one scenario, and " +
                 std::to_string(o.scenarios.size()) + " are given"};
  if (auto wrong = read_span("--for", w.spread, o.for_ms)) return *wrong;
  if (!o.replay.empty() && (w.times || w.canary || w.nodes || o.seed || o.for_ms > 0))
    return Usage{"--replay has its own --times, --seed, --canary, --nodes and --for"};
  o.times = w.times.value_or(o.times);
  o.canary = w.canary.value_or(o.canary);
  o.nodes = w.nodes.value_or(o.nodes);
  if (o.local &&
      !(o.pid_file.empty() && o.witness_dir.empty() && o.hooks == DrillOptions::Hooks() &&
        w.node_grace.empty() && w.restart_within.empty()))
    return Usage{
        "--pid-file, --witness-dir, --on-node, --start, --restart-within, --node-grace, --switch "
        "and --restore are for a running cluster, not for --local"};
  if (auto wrong = read_span("--node-grace", w.node_grace, o.node_grace_ms)) return *wrong;
  if (auto wrong = read_span("--restart-within", w.restart_within, o.restart_within_ms))
    return *wrong;
  return o;
}

}  // namespace

std::vector<Verb> drill_verbs(CLI::App& root) {
  auto w = std::make_shared<DrillWords>();
  DrillOptions& o = w->options;
  Verb verb = new_verb(root, "State", "drill",
                       "Inject faults into a cluster and prove that nothing is lost");
  CLI::App& app = *verb.app;
  app.add_option("what", w->what,
                 "list the scenarios, run them one after the other, or list the reports of "
                 "earlier drills")
      ->type_name("list | [run] SCENARIO... | history")
      ->required();
  app.add_flag("--local", o.local,
               "Start a scratch cluster and drill that; it is removed afterwards");
  const auto number = [&app](const char* flag, auto& value, const char* help, int64_t low,
                             int64_t high) {
    app.add_option(flag, value, help)->type_name("N")->check(whole(low, high));
  };
  number("--times", w->times, "Number of faults (default 1)", 1, drill::kTimesMax);
  number("--seed", o.seed, "Seed of the schedule and of the canary (default: a random one)", 0,
         INT64_MAX);
  number("--canary", w->canary, "Indexes of the canary, the job that is watched (default 60)",
         drill::kCanaryMin, drill::kCanaryMax);
  number("--nodes", w->nodes, "Nodes of the scratch cluster (default 3)", 1, drill::kNodesMax);
  app.add_option("--for", w->spread, "Repeat for this long, each time with another seed")
      ->type_name("T");
  app.add_flag_callback(
      "--no-baseline", [w] { w->options.baseline = false; },
      "Do not run the canary without faults first, to compare");
  app.add_option("--binary", o.binary, "Another muster to upgrade to; for upgrade")->type_name("F");
  app.add_option("--pid-file", o.pid_file,
                 "File with the coordinator's pid, or its endpoints.json; for a running cluster")
      ->type_name("F");
  app.add_option("--witness-dir", o.witness_dir,
                 "Directory that all nodes and this machine share; for a running cluster")
      ->type_name("D");
  app.add_option("--on-node", o.hooks.on_node,
                 "Command that runs {} on {node}, for agents of other machines: 'ssh {node} {}'")
      ->type_name("CMD");
  app.add_option("--start", o.hooks.start,
                 "Command that starts the agent of {node} there, if no supervisor does")
      ->type_name("CMD");
  app.add_option("--restart-within", w->restart_within,
                 "How long a killed daemon may take to come back (default 2m)")
      ->type_name("T");
  app.add_option("--node-grace", w->node_grace, "The running cluster's --node-grace (default 40s)")
      ->type_name("T");
  app.add_option("--switch", o.hooks.switch_to,
                 "Command that makes a machine's daemons start from {binary}; for upgrade")
      ->type_name("CMD");
  app.add_option("--restore", o.hooks.restore,
                 "Command that restarts the coordinator with the state of {backup}; for restore")
      ->type_name("CMD");
  app.add_flag("--yes", o.yes, "Skip the confirmation for a running cluster");
  app.add_option("--replay", o.replay, "JSON report whose schedule is run again")->type_name("F");
  app.add_option("--report", o.report_dir, "Directory of the reports (default: the current one)")
      ->type_name("D");
  app.add_option("-o,--output", w->output, "Form of the summary on stdout: table or json")
      ->type_name("FORM")
      ->check(one_of({"table", "json"}));
  add_target(verb, "");
  app.footer(
      "Examples:\n  muster drill list\n"
      "  muster drill run coordinator-kill --local --times 20\n"
      "  muster drill run storm --local --for 10m --report /var/tmp/drills\n"
      "  muster drill run coordinator-kill --pid-file /var/lib/muster/endpoints.json \\\n"
      "    --witness-dir /shared/drill\n"
      "  muster drill run node-loss --witness-dir /shared/drill --on-node 'ssh {node} sudo {}' \\\n"
      "    --start 'systemctl start muster-agent'\n"
      "On a running cluster, a drill uses only the namespace muster-drill and nodes labeled\n"
      "muster.dev/drill=true, and asks for confirmation first.\n"
      "Exit codes: 0 HELD, 1 BROKEN, 2 usage error, 3 INCONCLUSIVE, 130 interrupted.\n"
      "With several scenarios: 1 if one is BROKEN, else 3 if one is INCONCLUSIVE.");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    return read_drill_words(*w, target);
  };
  return {verb};
}

}  // namespace muster::cli
