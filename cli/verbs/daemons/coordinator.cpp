// muster coordinator: runs the coordinator until SIGTERM or SIGINT. Pods keep running. SIGHUP reads
// the configuration again, or ends it on a terminal. One of several (--store) serves whenever it
// leads.

#include "coordinator/coordinator.hpp"

#include "base/files/private_files.hpp"
#include "base/lines/line_queue.hpp"
#include "base/log.hpp"
#include "base/peer/local_sockets.hpp"
#include "base/process/service_manager.hpp"
#include "base/version.hpp"
#include "cli/verbs/daemons/daemon_options.hpp"
#include "cli/verbs/daemons/running_settings.hpp"
#include "client/follow/signals.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/starved.hpp"
#include "standby/standby.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

// Each client and each agent holds a connection. The usual limit of 1,024 only suits programs that
// use select().
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

coordinator::Options with_sockets(const CoordinatorOptions& options) {
  coordinator::Options with = options.options;
  if (!options.default_api_socket && !options.default_listen_socket) return with;
  const auto dir = make_runtime_dir();
  if (!dir) {
    log::warn("serving without Unix sockets: {}", dir.error().message);
    return with;
  }
  with.api_socket_required = !options.default_api_socket;
  with.listen_socket_required = !options.default_listen_socket;
  if (options.default_api_socket) with.api_socket = *dir + "/" + kApiSocket;
  if (options.default_listen_socket) with.listen_socket = *dir + "/" + kAgentsSocket;
  return with;
}

// Not even the thread that only waits for signals may wait for a reader of stdout, or nothing but
// SIGKILL would end us.
void tell_serving(const coordinator::Coordinator& coordinator, const std::string& data_dir) {
  std::string line = "muster coordinator is serving: api " + coordinator.api_address() +
                     ", agents " + coordinator.listen_address();
  if (const std::string at = coordinator.api_tls_address(); !at.empty())
    line += ", remote clients " + at;
  if (const std::string at = coordinator.listen_tls_address(); !at.empty())
    line += ", remote agents " + at;
  line += ", state in " + data_dir + "\n";
  Fd out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (out) LineQueue(std::move(out), [](uint64_t) { return ""; }).write(std::move(line));
}

void take_again(coordinator::Coordinator& coordinator, SettingsSource& source,
                const std::string& data_dir) {
  const auto valid = [](const Settings& settings) -> Status {
    auto options = coordinator_options(settings);
    return options ? Status(Nothing{}) : options.error();
  };
  const auto settings = read_again(source, valid);
  if (!settings) return;
  if (auto options = coordinator_options(*settings))
    coordinator.reload(options->options.roles, options->options.quotas);
  tell_settings(source, data_dir);
}

// Once it holds its data directory: one that may not start has one line to say.
void tell_start() {
  log::info("muster {} has started, pid {}", kVersion, getpid());
}

void tell_end(int signal) {
  log::info("SIG{}: shutting down; pods keep running", sigabbrev_np(signal));
}

int stopped() {
  log::info("stopped");
  return kDone;
}

// Until a signal ends us, or `over` once something has woken us. The watchdog hears of us only
// while the API's thread is not stuck. False: it is over.
bool serve(coordinator::Coordinator& coordinator, Signals& signals, const ServiceManager& manager,
           const CoordinatorOptions& options, const std::function<bool()>& over) {
  SettingsSource source = options.source;
  const bool reloads = reloads_at_hangup();
  const Millis each_ms = manager.alive_each_ms();
  while (!over()) {
    const int signal = signals.next(each_ms > 0 ? each_ms : Signals::kForever);
    if (signal == SIGHUP && reloads) {
      take_again(coordinator, source, options.options.data_dir);
    } else if (signal != 0) {
      tell_end(signal);
      return true;
    }
    if (each_ms > 0 && coordinator.responds(each_ms)) manager.alive();
  }
  return false;
}

// Waits for the lead. False: a signal has ended us.
bool follow(const standby::Standby& standby, Signals& signals, const ServiceManager& manager) {
  const Millis each_ms = manager.alive_each_ms();
  while (standby.lead() == nullptr) {
    const int signal = signals.next(each_ms > 0 ? each_ms : Signals::kForever);
    if (signal != 0 && (signal != SIGHUP || !reloads_at_hangup())) {
      tell_end(signal);
      return false;
    }
    if (each_ms > 0) manager.alive();
  }
  return true;
}

// One of several coordinators: serves whenever it leads.
int take_part(const CoordinatorOptions& options, const coordinator::Options& serves,
              Signals& signals, const ServiceManager& manager) {
  auto standby = standby::Standby::start(*options.standby, serves, [&signals] { signals.wake(); });
  if (!standby) return fail_daemon(standby.error(), "coordinator");
  tell_start();
  tell_settings(options.source, serves.data_dir);
  manager.ready();
  while (follow(**standby, signals, manager)) {
    coordinator::Options leads = serves;
    leads.lead = (*standby)->lead();
    auto coordinator = coordinator::Coordinator::start(leads);
    if (!coordinator) {
      (*standby)->hand_over();
      return fail_daemon(coordinator.error(), "coordinator");
    }
    tell_serving(**coordinator, serves.data_dir);
    const bool ends = serve(**coordinator, signals, manager, options,
                            [&standby] { return (*standby)->hands_over(); });
    if (ends) manager.stopping();
    (*coordinator)->stop();
    (*standby)->hand_over();  // before the teardown, for which nobody waits
    coordinator->reset();
    if (ends) return stopped();
    (*standby)->follow_again();
    tell_settings(options.source, serves.data_dir);  // what it has taken since is not in use
  }
  manager.stopping();
  return stopped();
}

}  // namespace

int execute(const CoordinatorOptions& options) {
  const ServiceManager manager = ServiceManager::take();
  Signals signals;  // before the first thread
  close_umask();
  log::setup_queued("coordinator", options.log_level, options.log_format);
  raise_open_files();
  if (const Status enough = want_descriptors(kDescriptorsToServe); !enough)
    return fail_daemon(enough.error(), "coordinator");
  const coordinator::Options serves = with_sockets(options);
  if (options.standby) return take_part(options, serves, signals, manager);
  if (const auto refused = standby::refuses_alone(serves.data_dir))
    return fail_daemon(*refused, "coordinator");
  auto coordinator = coordinator::Coordinator::start(serves);
  if (!coordinator) return fail_daemon(coordinator.error(), "coordinator");
  tell_start();
  tell_settings(options.source, serves.data_dir);
  tell_serving(**coordinator, serves.data_dir);
  manager.ready();
  serve(**coordinator, signals, manager, options, [] { return false; });
  manager.stopping();
  (*coordinator)->stop();
  return stopped();
}

Verb coordinator_verb() {
  return daemon_verb({"Daemons", "coordinator", "Run the coordinator"}, Section::coordinator,
                     coordinator_options, "data-dir: D",
                     "Example:\n  muster coordinator --data-dir /var/lib/muster\n"
                     "Once it is serving, D/endpoints.json has its addresses and pid.\n"
                     "SIGHUP reads the configuration again, unless it runs on a terminal.");
}

}  // namespace muster::cli
