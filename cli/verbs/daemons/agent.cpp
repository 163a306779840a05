// muster agent: the node's daemon. agent::run_agent() handles signals.
#include "agent/agent.hpp"

#include "agent/run/environment.hpp"
#include "base/files/private_files.hpp"
#include "base/log.hpp"
#include "cli/verbs/verbs.hpp"
#include "client/terminal/exit_codes.hpp"

#include <csignal>

namespace muster::cli {

int execute(const AgentOptions& options) {
  std::signal(SIGINT, SIG_DFL);
  close_umask();
  agent::forget_environment();
  log::setup_queued("agent", options.log_level);
  auto code = agent::run_agent(options.options);
  if (!code) return fail_daemon(code.error(), "agent");
  return *code;
}

}  // namespace muster::cli
