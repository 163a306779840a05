#include "cli/doctor/node.hpp"

#include <algorithm>
#include <iterator>

namespace muster::cli::doctor {
namespace {

constexpr Millis kNodeCertificateSoonMs = Millis{3} * 86'400'000;
constexpr size_t kMissingShown = 3;

void judge_cgroup(const CgroupFacts& facts, Findings& out) {
  const std::string upgrade =
      "run the keeper in a unit with Delegate=yes (docs/users.md), on a machine that boots with "
      "cgroup v2 alone (systemd.unified_cgroup_hierarchy=1)";
  if (!facts.mounted) {
    out.warn("cgroup", "cgroup v2 is not mounted: memory and CPU limits of pods are not enforced",
             upgrade);
    return;
  }
  if (!facts.not_seen.empty()) {
    out.unknown("cgroup", facts.path + ": " + facts.not_seen, "run this as root");
    return;
  }
  const std::string whose = facts.keeper
                                ? "the keeper's cgroup " + facts.path
                                : "a keeper started from here would use " + facts.path + ", which";
  if (facts.memory && facts.cpu) {
    out.ok("cgroup", whose + " enforces memory and CPU limits" +
                         (facts.cpuset ? ", and binds pods to CPUs" : ""));
    return;
  }
  const char* const missing = facts.memory ? "CPU" : facts.cpu ? "memory" : "memory and CPU";
  out.warn("cgroup", whose + " does not enforce " + missing + " limits of pods", upgrade);
}

void judge_keeper(const KeeperFacts& facts, Findings& out) {
  if (!facts.not_seen.empty()) {
    out.unknown("keeper", facts.not_seen, "run this as root");
    return;
  }
  const auto pid = [](int number) { return " (pid " + std::to_string(number) + ")"; };
  const std::string of_root = facts.of_root ? ", as root" : "";
  const std::string outdated = "runs an executable that has been replaced, as by an upgrade";
  if (facts.agent_pid != 0 && facts.agent_outdated)
    out.warn("agent", outdated, "restart it (systemctl restart muster-agent); pods keep running");
  else if (facts.agent_pid != 0)
    out.ok("agent", "runs" + pid(facts.agent_pid));
  else
    out.warn("agent", "no agent runs on this work-dir", "systemctl start muster-agent");
  if (facts.keeper_pid != 0 && facts.keeper_outdated)
    out.warn("keeper", outdated,
             "replace it while no pods run: systemctl reload muster-keeper, or drain the node and "
             "send it SIGTERM");
  else if (facts.keeper_pid != 0)
    out.ok("keeper", "runs" + of_root + pid(facts.keeper_pid));
  else if (facts.of_root)
    out.problem("keeper", "root's keeper does not run, so no pod can start",
                "systemctl start muster-keeper");
  else if (facts.agent_pid != 0)
    out.problem("keeper", "the agent has no keeper, so no pod can start",
                "see the agent's log, and keeper/log in the work-dir");
  else
    out.ok("keeper", "the agent will start it");
}

void judge_homes(const HomeFacts& facts, Findings& out) {
  if (facts.looked_at == 0) return;
  if (facts.missing.empty()) {
    out.ok("homes",
           std::to_string(facts.looked_at) +
               (facts.looked_at == 1 ? " home directory is there" : " home directories are there"));
    return;
  }
  std::string names;
  for (size_t i = 0; i < facts.missing.size() && i < kMissingShown; ++i)
    names += (i == 0 ? "" : ", ") + facts.missing[i];
  if (facts.missing.size() > kMissingShown) names += ", ...";
  out.warn("homes",
           std::to_string(facts.missing.size()) + " of " + std::to_string(facts.looked_at) +
               (facts.looked_at == 1 ? " home directory does not exist here: "
                                     : " home directories do not exist here: ") +
               names,
           "mount them: pods cannot start in directories that are not there")
      .breaks_pods = true;
}

void judge_links(const std::vector<LinkFacts>& links, Findings& out) {
  const bool any = std::any_of(links.begin(), links.end(), [](const LinkFacts& link) {
    return link.error.empty() && link.host.error.empty();
  });
  for (const LinkFacts& link : links) {
    judge_host(link.host, any ? Level::warning : Level::problem, out);
    if (!link.host.error.empty()) continue;
    if (link.error.empty())
      out.ok("coordinator", link.address + " accepts connections");
    else
      out.add(any ? Level::warning : Level::problem, "coordinator",
              link.address + ": " + link.error,
              "start the coordinator there, open the port in the firewall, or correct "
              "--coordinator of the agent");
  }
}

PlaceUse use_of_work_dir(uint64_t reserve_bytes) {
  return {.check = "work-dir",
          .keeps = "what pods ended with and the agent has not yet reported",
          .missing =
              "the agent creates it when it first starts; if it has run before, mount its "
              "disk, or give --work-dir",
          .slow = "ends of pods reach the disk that much later, and outputs wait for it, too",
          .reserve_bytes = reserve_bytes,
          .reserve_says = "the agent starts no pods (--disk-reserve)"};
}

}  // namespace

void judge_node(const NodeFacts& facts, Findings& out) {
  if (!facts.config_error.empty())
    out.problem("configuration", facts.config_error,
                "correct it, and check with `muster config check`");
  judge_private_place(facts.work_dir, use_of_work_dir(facts.reserve_bytes), out);
  judge_tmp(facts.tmp, out);
  judge_keeper(facts.keeper, out);
  judge_cgroup(facts.cgroup, out);
  judge_pids(facts.cgroup.pids_max, facts.cgroup.path, facts.slots, out);
  judge_pod_limits(facts.limits, facts.slots, facts.has_rdma, out);
  if (facts.certificate)
    judge_certificate(*facts.certificate, "certificate", kNodeCertificateSoonMs,
                      "see the agent's log for why it does not renew it, or let it join again: "
                      "`muster token create --node NAME` on the coordinator's machine",
                      out);
  judge_links(facts.links, out);
  if (!facts.own_name.error.empty())
    out.warn("host name",
             facts.own_name.host + " cannot be resolved on this machine: " + facts.own_name.error,
             "add it to /etc/hosts or DNS: MPI programs look it up")
        .breaks_pods = true;
  else if (!facts.own_name.host.empty())
    out.ok("host name", facts.own_name.host + " is " + facts.own_name.addresses);
  judge_homes(facts.homes, out);
  for (const std::string& launcher : facts.launchers) out.ok("MPI launcher", launcher);
}

std::vector<Finding> breaking_pods(const NodeFacts& facts) {
  Findings all;
  judge_node(facts, all);
  std::vector<Finding> breaking;
  std::copy_if(all.all().begin(), all.all().end(), std::back_inserter(breaking),
               [](const Finding& one) { return one.breaks_pods; });
  return breaking;
}

}  // namespace muster::cli::doctor
