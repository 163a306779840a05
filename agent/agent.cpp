#include "agent/agent.hpp"

#include "agent/agent_loop.hpp"
#include "agent/files/logs.hpp"
#include "agent/files/work_dir.hpp"
#include "agent/link/credentials.hpp"
#include "agent/link/pool_name.hpp"
#include "agent/metrics_port.hpp"
#include "agent/run/hollow_executor.hpp"
#include "agent/run/keeper_executor.hpp"
#include "base/check.hpp"
#include "base/process/gpus.hpp"
#include "base/process/physical_memory.hpp"
#include "base/process/usable_cpus.hpp"

#include <kj/async-io.h>
#include <kj/debug.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::agent {

namespace {

AgentOptions with_defaults(AgentOptions options) {
  const uint32_t cpus = usable_cpu_count();
  if (options.slots == 0) options.slots = cpus;
  if (options.cpu_millis == 0) options.cpu_millis = uint64_t{cpus} * 1000;
  if (options.memory_bytes == 0) options.memory_bytes = physical_memory_bytes();
  if (options.keeper_path.empty()) {
    std::error_code error;
    auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    MUSTER_CHECK(!error, error.message());
    options.keeper_path = self.replace_filename("muster-keeper").string();
  }
  return options;
}

kj::Promise<void> obey_signals(kj::UnixEventPort& port, Agent& agent, int signal) {
  return port.onSignal(signal).then([&port, &agent, signal](siginfo_t&&) {
    agent.obey(signal == SIGUSR2 ? AgentControl::Command::leave : AgentControl::Command::drain);
    return obey_signals(port, agent, signal);
  });
}

kj::Promise<void> obey_hangups(kj::UnixEventPort& port, const std::function<void()>& obey) {
  return port.onSignal(SIGHUP).then([&port, &obey](siginfo_t&&) {
    obey();
    return obey_hangups(port, obey);
  });
}

// While the loop runs.
kj::Promise<void> stay_alive(kj::Timer& timer, const ServiceManager& manager) {
  manager.alive();
  return timer.afterDelay(manager.alive_each_ms() * kj::MILLISECONDS).then([&timer, &manager] {
    return stay_alive(timer, manager);
  });
}

kj::Promise<void> obey_control(kj::UnixEventPort::FdObserver& seen, Agent& agent,
                               AgentControl& control) {
  agent.obey(control.take());
  return seen.whenBecomesReadable().then(
      [&seen, &agent, &control] { return obey_control(seen, agent, control); });
}

}  // namespace

AgentControl::AgentControl() {
  KJ_SYSCALL(fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

AgentControl::~AgentControl() {
  close(fd_);
}

// Each command counts in its own 16 bits of the eventfd, so take() can tell several pending ones
// apart.
void AgentControl::order(Command command) {
  eventfd_write(fd_, eventfd_t{1} << (16 * static_cast<int>(command)));
}

AgentControl::Command AgentControl::take() {
  eventfd_t given = 0;
  if (eventfd_read(fd_, &given) != 0) return Command::none;
  for (Command command : {Command::kill, Command::leave, Command::drain}) {
    if ((given >> (16 * static_cast<int>(command)) & 0xffff) != 0) return command;
  }
  return Command::none;
}

std::vector<std::string> learn_environment(AgentOptions& options) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  if (const std::string pool = pool_of(options.token_file); !pool.empty())
    options.name_in_pool = pool_node_name(pool, host_name(), variable);
  if (!options.finds_gpus || options.hollow) return {};
  Gpus found = find_gpus("", variable);
  for (auto& [name, numbers] : found.numbers)
    if (options.resources.try_emplace(name, numbers.size()).second)
      options.device_numbers[name] = std::move(numbers);
  return std::move(found.troubles);
}

Result<int> run_agent(const AgentOptions& given, AgentControl* control) {
  if (control == nullptr) {  // before any other thread starts
    for (int signal : {SIGTERM, SIGINT, SIGUSR2}) kj::UnixEventPort::captureSignal(signal);
    if (given.at_hangup) kj::UnixEventPort::captureSignal(SIGHUP);
  }
  AgentOptions options = with_defaults(given);
  MUSTER_CHECK(options.hollow || !options.work_dir.empty());
  auto io = kj::setupAsyncIo();
  const std::string otherwise = options.name_in_pool.empty() ? host_name() : options.name_in_pool;
  auto work_dir =
      options.work_dir.empty()
          ? Result<WorkDir>(WorkDir::ephemeral(options.name.empty() ? otherwise : options.name))
          : WorkDir::open(options.work_dir, options.name, otherwise);
  if (!work_dir) return work_dir.error();
  if (options.at_start) options.at_start();
  auto credentials = Credentials::load(*work_dir, options.token_file);
  if (!credentials) return credentials.error();
  LogStore logs(work_dir->path() + "/logs");
  RunDirs run_dirs(work_dir->path(), work_dir->secret());
  std::unique_ptr<Executor> executor;
  if (options.hollow) {
    executor = std::make_unique<HollowExecutor>(io.provider->getTimer(), options.hollow_duration_ms,
                                                options.hollow_exit_code);
  } else {
    std::vector<std::string> resources;
    for (const auto& [name, count] : options.resources) resources.push_back(name);
    executor = std::make_unique<KeeperExecutor>(
        io.unixEventPort, *work_dir, logs, run_dirs, options.keeper_path, options.scratch_dir,
        extras_of(options), options.output_max_bytes, std::move(resources), options.binds_cpus,
        KeeperExecutor::Hooks{options.prolog, options.epilog});
  }
  Agent agent(io, options, *work_dir, *credentials, logs, run_dirs, *executor);
  MetricsPort metrics(io.provider->getTimer(), [&agent] { return agent.metrics(); });
  if (!options.metrics.empty()) {
    if (Status ok = metrics.serve(io.provider->getNetwork(), options.metrics, io.waitScope); !ok)
      return ok.error();
  }
  auto left = agent.run();  // before any order can arrive
  kj::Maybe<kj::UnixEventPort::FdObserver> seen;
  kj::Promise<void> obeying = nullptr;
  if (control == nullptr) {
    obeying = obey_signals(io.unixEventPort, agent, SIGTERM)
                  .exclusiveJoin(obey_signals(io.unixEventPort, agent, SIGINT))
                  .exclusiveJoin(obey_signals(io.unixEventPort, agent, SIGUSR2));
    if (options.at_hangup)
      obeying = obeying.exclusiveJoin(obey_hangups(io.unixEventPort, options.at_hangup));
  } else {
    auto& observer =
        seen.emplace(io.unixEventPort, control->fd(), kj::UnixEventPort::FdObserver::OBSERVE_READ);
    obeying = obey_control(observer, agent, *control);
  }
  obeying = obeying.eagerlyEvaluate(
      [](kj::Exception&& e) { MUSTER_CHECK(false, e.getDescription().cStr()); });
  if (!agent.finished()) options.manager.ready();
  kj::Promise<void> living = options.manager.alive_each_ms() > 0
                                 ? stay_alive(io.provider->getTimer(), options.manager)
                                 : kj::Promise<void>(kj::NEVER_DONE);
  living = living.eagerlyEvaluate(nullptr);
  auto result = left.wait(io.waitScope);
  options.manager.stopping();
  return result;
}

AgentThread::AgentThread(AgentOptions options)
    : thread_([this, options = std::move(options)] { result_ = run_agent(options, &control_); }) {}

AgentThread::~AgentThread() {
  if (!thread_.joinable()) return;
  stop_now(false);
  thread_.join();
}

Result<int> AgentThread::join() {
  if (thread_.joinable()) thread_.join();
  return *result_;
}

}  // namespace muster::agent
