// muster-bench-nodes: many hollow agents in one process, each a node with its own connection.
//
// For scale tests: a thousand processes would measure the machine's scheduler. Its nodes are named
// node-0, node-1 and so on. Runs until it is killed.
#include "agent/agent_loop.hpp"
#include "agent/files/logs.hpp"
#include "agent/files/work_dir.hpp"
#include "agent/run/hollow_executor.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "core/spec/values/well_known.hpp"

#include <kj/async-io.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::bench {
namespace {

struct Node {
  Node(kj::AsyncIoContext& io, const agent::AgentOptions& options)
      : work_dir(agent::WorkDir::ephemeral(options.name)),
        logs(""),
        run_dirs(work_dir.path(), work_dir.secret()),
        executor(io.provider->getTimer(), options.hollow_duration_ms, options.hollow_exit_code),
        credentials(std::move(*agent::Credentials::load(work_dir, options.token_file))),
        agent(io, options, work_dir, credentials, logs, run_dirs, executor) {}

  agent::WorkDir work_dir;
  agent::LogStore logs;
  agent::RunDirs run_dirs;
  agent::HollowExecutor executor;
  agent::Credentials credentials;
  agent::Agent agent;
};

int usage() {
  std::fprintf(stderr,
               "muster-bench-nodes --coordinator ADDR [--nodes N] [--slots N] [--duration-ms N] "
               "[--exit-code N]\n");
  return 2;
}

int main(int argc, char** argv) {
  agent::AgentOptions options;
  options.slots = 1;
  options.cpu_millis = 1'000;
  options.memory_bytes = 1ull << 30;
  options.hollow = true;
  options.evict_below_bytes.reset();
  options.labels[std::string(core::kHollowKey)] = "true";
  long nodes = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    const long number = std::strtol(value.c_str(), nullptr, 10);
    if (flag == "--coordinator")
      options.coordinators = {value};
    else if (flag == "--nodes")
      nodes = number;
    else if (flag == "--slots")
      options.slots = static_cast<uint32_t>(number);
    else if (flag == "--duration-ms")
      options.hollow_duration_ms = number;
    else if (flag == "--exit-code")
      options.hollow_exit_code = static_cast<int>(number);
    else
      return usage();
  }
  if (argc % 2 == 0 || options.coordinators.empty() || nodes < 1) return usage();
  log::setup("nodes", "error");
  auto io = kj::setupAsyncIo();
  std::vector<std::unique_ptr<Node>> all;
  std::vector<kj::Promise<Result<int>>> left;
  for (long i = 0; i < nodes; ++i) {
    options.name = "node-" + std::to_string(i);
    all.push_back(std::make_unique<Node>(io, options));
    left.push_back(all.back()->agent.run());
  }
  auto first = std::move(left.front());
  for (size_t i = 1; i < left.size(); ++i) first = first.exclusiveJoin(std::move(left[i]));
  const auto result = first.wait(io.waitScope);
  if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str());
  return 1;  // a node has left
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::main(argc, argv);
}
