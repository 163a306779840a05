#include "drill/survey.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/json.hpp"
#include "drill/process/process.hpp"

#include <algorithm>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr char kEncodedComma[] = "%2C", kEncodedEquals[] = "%3D";

std::string how_many(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// Adds other users' pods running on the node to `running`, by namespace.
Status count_pods(ApiClient& client, const std::string& node,
                  std::map<std::string, uint64_t>& running) {
  auto pods =
      object(client, object_path(Kind::pod, "") + "?fieldSelector=spec.nodeName" + kEncodedEquals +
                         node + kEncodedComma + "status.phase" + kEncodedEquals + "Running");
  if (!pods) return pods.error();
  for (const Json& pod : at(*pods, {"items"}))
    if (const std::string ns = text_at(pod, {"metadata", "namespace"}); ns != kDrillNamespace)
      ++running[ns];
  return Nothing{};
}

Result<uint64_t> unfinished_jobs(ApiClient& client) {
  auto jobs = object(client, object_path(Kind::job, ""));
  if (!jobs) return jobs.error();
  uint64_t unfinished = 0;
  for (const Json& job : at(*jobs, {"items"}))
    unfinished +=
        text_at(job, {"metadata", "namespace"}) != kDrillNamespace && end_of(job) == JobEnd::none
            ? 1
            : 0;
  return unfinished;
}

bool any(const std::vector<Fault>& faults, bool (*is)(Fault)) {
  return std::any_of(faults.begin(), faults.end(), is);
}

bool hits_coordinator(Fault fault) {
  return !hits_node(fault);
}

std::string pid_of(const Json& process) {
  return "pid " + std::to_string(number_at(process, {"pid"})) + ", started at tick " +
         std::to_string(number_at(process, {"ticks"}));
}

}  // namespace

Result<Survey> survey_nodes(ApiClient& client) {
  auto nodes = object(client, object_path(Kind::node, ""));
  if (!nodes) return nodes.error();
  Survey survey;
  for (const Json& node : at(*nodes, {"items"})) {
    if (text_at(node, {"metadata", "labels", kDrillLabel}) != "true") continue;
    survey.ready += condition_of(node, "Ready").is_null() ? 0 : 1;
    survey.nodes.push_back(
        {text_at(node, {"metadata", "name"}), text_at(node, {"metadata", "uid"}), false, {}});
  }
  std::sort(survey.nodes.begin(), survey.nodes.end(),
            [](const DrillNode& a, const DrillNode& b) { return a.name < b.name; });
  const std::string label = std::string(kDrillLabel) + "=true";
  if (survey.nodes.empty())
    return Error{Errc::not_found,
                 "no node has the label " + label + "; choose some with `muster agent --label " +
                     label + "` or `kubectl label node NODE " + label + "`",
                 {}};
  if (survey.nodes.size() > kNodesMax)
    return invalid(std::to_string(survey.nodes.size()) + " nodes have the label " + label +
                   "; a drill uses at most " + std::to_string(kNodesMax));
  return survey;
}

Status survey_daemons(ApiClient& client, const Scenario& scenario, const std::string& pid_file,
                      const Reach& reach, Survey& survey) {
  survey.faults = scenario.faults;
  if (any(scenario.faults, hits_coordinator)) {
    auto process = process_in_file(pid_file, "coordinator");
    if (!process) return process.error();
    survey.coordinator = process->name() + ", " + process->executable();
  }
  const bool upgrade = scenario.faults[0] == Fault::upgrade;
  if (any(scenario.faults, hits_node) || upgrade) {
    for (DrillNode& node : survey.nodes)
      if (Status s = reach.find(node); !s)
        return unavailable(s.error().message + "; or drill a scratch cluster: --local");
    const auto uncut =
        std::find_if(survey.nodes.begin(), survey.nodes.end(),
                     [](const DrillNode& node) { return node.seen.contains("noCut"); });
    const auto cut = std::find(survey.faults.begin(), survey.faults.end(), Fault::partition);
    if (cut != survey.faults.end() && uncut != survey.nodes.end()) {
      const std::string why = "node " + uncut->name + ": " + text_at(uncut->seen, {"noCut"});
      if (survey.faults.size() == 1) return unavailable(why + "; or --local, which needs neither");
      survey.left_out.push_back(std::string(name(*cut)) + ": " + why);
      survey.faults.erase(cut);
    }
    for (const DrillNode& node : survey.nodes)
      if (Status s = count_pods(client, node.name, survey.running); !s) return s;
  }
  if (scenario.faults[0] == Fault::restore) {
    auto jobs = unfinished_jobs(client);
    if (!jobs) return jobs.error();
    survey.jobs = *jobs;
    if (survey.jobs > 0)
      return Error{Errc::conflict,
                   "a restore loses everything accepted after its backup, including the work of " +
                       how_many(survey.jobs, "unfinished job") +
                       " of others; wait for them, or drill a scratch cluster: --local",
                   {}};
  }
  return Nothing{};
}

std::vector<std::string> plan_lines(const Survey& survey, const Hooks& hooks,
                                    const std::string& witness_dir) {
  std::vector<std::string> lines;
  const auto add = [&lines](const char* what, const std::string& text) {
    std::string label(what);
    label.resize(11, ' ');
    lines.push_back("  " + label + text);
  };
  const char* hit = "will hit";
  if (!survey.coordinator.empty()) {
    add(hit, "the coordinator: " + survey.coordinator);
    hit = "";
  }
  const bool nodes = !survey.nodes.empty() && !survey.nodes[0].seen.is_null();
  for (const DrillNode& node : survey.nodes) {
    if (!nodes) break;
    const std::string unit = text_at(node.seen, {"unit"});
    std::string text = node.name + (node.here ? "" : ", by --on-node") + ": agent " +
                       pid_of(at(node.seen, {"agent"}));
    if (node.seen.contains("keeper")) text += "; keeper " + pid_of(at(node.seen, {"keeper"}));
    text += "; restarted by " + (!hooks.start.empty() ? "--start"
                                 : unit.empty()       ? "its supervisor, if it has one"
                                                      : unit);
    add(hit, text);
    hit = "";
  }
  for (const std::string& why : survey.left_out) add("leaves out", why);
  add("will use", std::string("namespace ") + kDrillNamespace + ", nodes labeled " + kDrillLabel +
                      "=true, files in " + witness_dir);
  if (nodes) {
    uint64_t pods = 0;
    std::string where;
    for (const auto& [ns, count] : survey.running) {
      pods += count;
      where += (where.empty() ? "" : ", ") + ns + " " + std::to_string(count);
    }
    const bool hurts = any(survey.faults, disrupts);
    if (pods == 0)
      add("meanwhile", "no pods of others run on these nodes" +
                           std::string(hurts ? "; any that start would be disrupted" : ""));
    else
      add("meanwhile",
          how_many(pods, "pod") + " of others on these nodes (" + where + ") " +
              (hurts ? "may end or be replaced, which counts as a disruption" : "keep running"));
  }
  if (any(survey.faults, hits_coordinator))
    add(nodes ? "" : "meanwhile", "this cluster's API will be briefly unavailable");
  if (!survey.faults.empty() && survey.faults[0] == Fault::restore)
    add("", "whatever anyone submits between backup and restore is lost");
  return lines;
}

}  // namespace muster::cli::drill
