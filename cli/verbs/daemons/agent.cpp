// muster agent: the node's daemon. agent::run_agent() handles signals.

#include "agent/agent.hpp"

#include "agent/run/environment.hpp"
#include "base/files/private_files.hpp"
#include "base/log.hpp"
#include "cli/verbs/daemons/daemon_options.hpp"
#include "client/terminal/exit_codes.hpp"

#include <csignal>

namespace muster::cli {

int execute(const AgentOptions& options) {
  std::signal(SIGINT, SIG_DFL);
  close_umask();
  agent::AgentOptions with = options.options;
  with.manager = ServiceManager::take();
  if (reloads_at_hangup())
    with.at_hangup = [source = options.source]() mutable {
      read_again(source, [](const Settings& settings) -> Status {
        auto read = agent_options(settings);
        return read ? Status(Nothing{}) : read.error();
      });
    };
  agent::forget_environment();
  log::setup_queued("agent", options.log_level);
  auto code = agent::run_agent(with);
  if (!code) return fail_daemon(code.error(), "agent");
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
