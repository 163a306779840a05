// muster agent: the node's daemon. agent::run_agent() handles signals.

#include "agent/agent.hpp"

#include "agent/run/environment.hpp"
#include "base/files/private_files.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "cli/doctor/look.hpp"
#include "cli/verbs/daemons/daemon_options.hpp"
#include "cli/verbs/daemons/running_settings.hpp"
#include "client/terminal/exit_codes.hpp"

#include <csignal>
#include <string>
#include <unistd.h>
#include <vector>

namespace muster::cli {

int execute(const AgentOptions& options) {
  std::signal(SIGINT, SIG_DFL);
  close_umask();
  agent::AgentOptions with = options.options;
  with.manager = ServiceManager::take();
  const std::string& dir = with.work_dir;
  if (!dir.empty()) with.at_start = [&] { tell_settings(options.source, dir); };
  if (reloads_at_hangup())
    with.at_hangup = [&dir, source = options.source]() mutable {
      const auto taken = read_again(source, [](const Settings& settings) -> Status {
        auto read = agent_options(settings);
        return read ? Status(Nothing{}) : read.error();
      });
      if (taken && !dir.empty()) tell_settings(source, dir);
    };
  const std::vector<std::string> troubles = agent::learn_environment(with);
  agent::forget_environment();
  log::setup_queued("agent", options.log_level, options.log_format);
  log::info("muster {} has started, pid {}", kVersion, getpid());
  for (const std::string& trouble : troubles) log::warn("{}", trouble);
  for (const auto& [name, numbers] : with.device_numbers)
    log::info("found {} of {}; --gpus none keeps pods from requesting them", numbers.size(), name);
  if (!with.hollow)
    for (const doctor::Finding& one :
         breaking_pods(doctor::look_at_node(with, doctor::Depth::breaking_pods)))
      log::warn("{}: {}; {}", one.check, one.found, one.advice);
  auto code = agent::run_agent(with);
  if (!code) return fail_daemon(code.error(), "agent");
  log::info("stopped");
  return *code;
}

Verb agent_verb() {
  return daemon_verb(
      {"Daemons", "agent", "Run the node agent"}, Section::agent, agent_options, "work-dir: D",
      "Examples:\n"
      "  muster agent --coordinator 127.0.0.1:7118 --work-dir /var/lib/muster-agent --slots 8 "
      "--label disk=ssd\n  muster agent --hollow --slots 1000 --hollow-duration 100ms\n"
      "SIGTERM drains: pods get SIGTERM and their grace period. SIGUSR2 exits at once; pods "
      "keep running.\nSIGHUP reads the configuration again, unless it runs on a terminal.");
}

}  // namespace muster::cli
