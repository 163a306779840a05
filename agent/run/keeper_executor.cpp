#include "agent/run/keeper_executor.hpp"

#include "agent/run/output_client.hpp"
#include "base/check.hpp"
#include "base/exec_exit.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "core/node/space.hpp"
#include "core/node/template_codec.hpp"
#include "core/node/values.hpp"
#include "core/pod_name.hpp"
#include "keeper/protocol.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace muster::agent {

namespace {

// A keeper stays while an agent talks to it, so a restart of the agent does not replace it.
Error too_old(const char* lacks) {
  return {Errc::invalid,
          std::string("this node's keeper is too old: it ") + lacks +
              "; drain the node, end its keeper with SIGTERM and restart its agent",
          {}};
}

ProcessKey key_of(PodId pod, core::node::Step step) {
  return {pod, step.container, step.instance};
}

core::node::Step step_of(const ProcessKey& key) {
  return {key.container, key.instance};
}

constexpr int64_t kLastLineMax = 400;  // bytes

std::string log_of(uint16_t hook) {
  return hook == core::node::kProlog ? core::node::kPrologLog : core::node::kEpilogLog;
}

bool is_session(core::node::Step step) {
  return (step.container & keeper::kSessionBit) != 0;
}

Executor::SessionKey session_of(PodId pod, core::node::Step step) {
  return {pod, static_cast<uint16_t>(step.container & ~keeper::kSessionBit), step.instance};
}

ProcessKey key_of(const Executor::SessionKey& key) {
  return {key.pod, static_cast<uint16_t>(key.container | keeper::kSessionBit), key.number};
}

// A session runs where its pod does, so it makes no difference whose fault a failed start is.
Executor::SessionEnd session_end(const keeper::Ended& ended) {
  const bool not_here = !ended.start && ended.exit_code == core::kExitNotHere;
  return {session_of(ended.pod, ended.step),
          ended.entry,
          not_here ? kExitCannotStart : ended.exit_code,
          ended.signal,
          ended.lost,
          ended.error,
          ended.unstarted};
}

Executor::SessionFound found_session(PodId pod, core::node::Step step, const Note& note) {
  return {session_of(pod, step), note.session, note.job_uid, note.pod_name, note.container};
}

}  // namespace

Result<Executor::Inventory> KeeperExecutor::connect(Executor::Listener& listener) {
  // Only at the start may this wait for a keeper that somebody has to start: later, there are
  // heartbeats to send.
  const bool again = std::exchange(listener_, &listener) != nullptr;
  agent::Inventory known;
  KeeperClient::Listener& self = *this;
  auto options = [this, again] {
    return KeeperClient::Options{work_dir_.path(), keeper_path_,      work_dir_.cluster_id(),
                                 scratch_dir_,     output_max_bytes_, again};
  };
  auto keeper = KeeperClient::connect(port_, options(), self, known);
  if (!keeper && keeper.error().code == Errc::invalid) {
    log::error(
        "the spool in {}/keeper is damaged ({}); moving it aside and registering as a new node",
        work_dir_.path(), keeper.error().message);
    if (Status renewed = work_dir_.renew_id(); !renewed) return renewed.error();
    known = {};
    keeper = KeeperClient::connect(port_, options(), self, known);
  }
  if (!keeper) return keeper.error();
  keeper_ = kj::mv(*keeper);
  node_.scratch = keeper_->abilities().scratch;
  node_.memory = keeper_->abilities().memory;

  if (binds_cpus_ && !keeper_->abilities().binds)
    log::warn("--cpu-binding has no effect: {}", too_old("does not bind pods to CPUs").message);
  if (keeper_->abilities().run_as) run_dirs_.open_to_users();
  Inventory inventory;
  std::vector<SessionFound> sessions;
  // Ends first: a container that was restarted has the same output as its next process.
  for (keeper::Ended& ended : known.ended) {
    Note note = Note::parse(ended.note);
    if (is_session(ended.step)) {
      sessions.push_back(found_session(ended.pod, ended.step, note));
      sessions.back().end = session_end(ended);
      continue;
    }
    logs_.close(note.job_uid, note.pod_name);
    logs_.times().end(logs_.output(note.job_uid, note.pod_name, note.container));
    ended.origin = origin_of(ended.pod, note, inventory);
    if (core::node::is_hook(ended.step.container) && ended.start && ended.exit_code != 0)
      ended.error = last_line(note);
    inventory.ended.push_back(std::move(ended));
  }
  for (const auto& living : known.living) {
    const core::node::Step step = step_of(living.key);
    Note note = Note::parse(living.note);
    logs_.adopt(note.job_uid, note.pod_name);
    if (is_session(step)) {
      sessions.push_back(found_session(living.key.pod, step, note));
      continue;
    }
    logs_.times().adopt(logs_.output(note.job_uid, note.pod_name, note.container));
    inventory.living.push_back({living.key.pod, step, living.start, note.grace_ms, living.killing,
                                origin_of(living.key.pod, note, inventory), living.queued,
                                living.cpus});
  }
  templates_.sweep();
  for (const auto& [pod, job] : inventory.templates)
    if (!job->mpi.empty()) run_dirs_.adopt(pod, job);
  run_dirs_.sweep();
  if (sessions_ != nullptr) sessions_->on_sessions(std::move(sessions));
  return inventory;
}

// How far a pod of several processes has come. Without its template nothing more can be started, so
// the pod ends with this process.
core::node::Origin KeeperExecutor::origin_of(PodId pod, const Note& note, Inventory& inventory) {
  core::node::Origin origin{.grace_ms = note.grace_ms};
  if (!note.planned) return origin;
  origin.devices = note.devices;
  origin.pod_started_at = note.pod_started_at;
  origin.level = note.level;
  origin.used = note.used;
  origin.stop = note.stop;
  core::node::PodTemplatePtr job = templates_.load(note.job_uid, note.generation);
  if (job == nullptr) {
    log::warn(
        "the template of {} is missing from {}/templates: the pod ends when its running process "
        "ends",
        note.pod_name, work_dir_.path());
    return origin;
  }
  origin.plan = job->plan;
  inventory.templates.emplace(pod, std::move(job));
  return origin;
}

Executor::Limits KeeperExecutor::limits() const {
  if (keeper_ == nullptr) return {false, false, "the keeper is not running"};
  KeeperClient::Abilities can = keeper_->abilities();
  return {can.memory_limit, can.cpu_limit, can.no_limits};
}

std::string KeeperExecutor::keeper_version() const {
  return keeper_ == nullptr ? "" : keeper_->abilities().version;
}

Result<core::InputTablePtr> KeeperExecutor::inputs_of(const core::node::PodTemplate& job) {
  if (job.inputs_file.empty()) return core::InputTablePtr();
  return input_file_.read(job.inputs_file);
}

// Pods of one template start in a row; from the second on, their common part is prepared.
Result<core::node::Command> KeeperExecutor::command_for(const Start& start,
                                                        const core::node::DeviceMap& devices) {
  const core::node::PodTemplate& job = *start.job;
  const core::Container& container = job.containers[start.order.step.container].what;
  const auto inputs = inputs_of(job);
  if (!inputs) return inputs.error();
  if (job.plan != nullptr) {
    const core::node::MpiFacts mpi = run_dirs_.facts(start.order.pod);
    return core::node::command_of(job, container, start.order.pod, node_, devices,
                                  job.mpi.empty() ? nullptr : &mpi, inputs->get());
  }
  if (job.inputs || *inputs)
    return core::node::command_of(job, container, start.order.pod, node_, devices, nullptr,
                                  inputs->get());
  if (last_job_ != start.job) {
    last_job_ = start.job;
    pattern_.reset();
    return core::node::command_of(job, container, start.order.pod, node_, devices);
  }
  if (!pattern_) pattern_ = core::node::CommandPattern::of(job, container, node_, devices);
  return pattern_ ? pattern_->command(job, start.order.pod)
                  : core::node::command_of(job, container, start.order.pod, node_, devices);
}

core::node::DeviceMap KeeperExecutor::devices_of(const core::node::PodTemplate& job,
                                                 size_t container,
                                                 const core::node::DeviceMapPtr& of_pod) const {
  core::node::DeviceMap devices;
  if (of_pod) devices = core::node::devices_of(job, container, *of_pod);
  core::node::hide_others(devices, resources_);
  return devices;
}

// Whether this node may run the processes of the job.
Status KeeperExecutor::allowed(const core::node::PodTemplate& job) const {
  const bool as_owner = runs_users();
  if (as_owner && job.permit == nullptr)
    return Error{Errc::invalid,
                 "the job has no owner, and this node runs pods only as their owners"};
  if (!as_owner && job.owner_uid && *job.owner_uid != geteuid())
    return Error{Errc::invalid, "the job belongs to uid " + std::to_string(*job.owner_uid) +
                                    ", and this node runs processes of uid " +
                                    std::to_string(geteuid()) + " only"};
  return Nothing{};
}

Status KeeperExecutor::add_space(SpawnOrder& order, const core::node::PodTemplate& job,
                                 size_t container) {
  if (!core::node::has_space(job)) return Nothing{};
  if (keeper_.get() == nullptr) return Nothing{};  // nothing will be started
  const KeeperClient::Abilities can = keeper_->abilities();
  if (!can.spaces) return too_old("does not support volumes");
  if (!can.confines && core::node::shares_memory(job))
    return too_old("does not share volumes in memory between containers");
  order.private_tmp = job.private_tmp;
  if (order.permit) return Nothing{};
  Writer out(order.space);
  core::node::write_space(
      out, core::node::space_of(job, container, order.key.pod,
                                {node_.scratch, node_.memory, node_.home}, job.private_tmp));
  return Nothing{};
}

Status KeeperExecutor::confine(SpawnOrder& order, const core::node::TemplateContainer& container) {
  const core::node::Confinement& wanted = container.confinement;
  if (order.permit || !wanted.any()) return Nothing{};  // with a permit, it is confined anyway
  if (std::string why = refusal_of(wanted, container.what.name, geteuid(), getegid()); !why.empty())
    return Error{Errc::invalid, std::move(why)};
  order.no_new_privileges = wanted.no_new_privileges;
  order.dropped_capabilities = wanted.dropped;
  const bool gives_up = order.no_new_privileges || order.dropped_capabilities != 0;
  if (gives_up && !keeper_can(&KeeperClient::Abilities::confines))
    return too_old("does not support securityContext");
  return Nothing{};
}

Status KeeperExecutor::prepare_run_dir(PodId pod, const core::node::PodTemplatePtr& job) {
  if (job->mpi.empty()) return Nothing{};
  return run_dirs_.make(pod, job->owner_uid.value_or(geteuid()), job);
}

Status KeeperExecutor::start_session(SessionStart start) {
  if (keeper_.get() == nullptr) return Error{Errc::unavailable, "the keeper is not running", {}};
  if (!keeper_->abilities().sessions) return too_old("does not run commands in running pods");
  if ((start.reads || start.terminal) && !keeper_->abilities().input)
    return too_old("does not pass input to commands");
  const core::node::PodTemplate& job = *start.job;
  if (Status may = allowed(job); !may) return may;
  const core::Container& container = job.containers[start.key.container].what;
  const bool as_owner = runs_users();
  const core::node::MpiFacts mpi = run_dirs_.facts(start.key.pod);
  core::node::DeviceMap devices = devices_of(job, start.key.container, start.devices);
  const auto inputs = as_owner ? core::InputTablePtr() : inputs_of(job);
  if (!inputs) return inputs.error();
  Result<core::node::Command> command =
      as_owner ? core::node::Command{}
               : core::node::session_command(job, container, start.key.pod, node_, devices,
                                             job.mpi.empty() ? nullptr : &mpi,
                                             std::move(start.command), inputs->get());
  if (!command) return command.error();
  auto files = logs_.open(job.job_uid, start.pod_name, start.log);
  if (!files) return files.error();
  Note note{job.grace_ms, job.job_uid, start.pod_name, start.log};
  note.session = start.id;
  SpawnOrder order =
      order_of(key_of(start.key), job, std::move(*command), std::move(*files), std::move(devices));
  order.note = note.text();
  order.reads = start.reads;
  order.terminal = start.terminal;
  if (Status added = add_space(order, job, start.key.container); !added) return added;
  if (Status confined = confine(order, job.containers[start.key.container]); !confined)
    return confined;
  std::vector<SpawnOrder> orders;
  orders.push_back(std::move(order));
  keeper_->spawn(std::move(orders));
  return Nothing{};
}

void KeeperExecutor::kill_session(const SessionKey& key, Millis grace_ms) {
  if (keeper_.get() != nullptr) keeper_->kill(key_of(key), grace_ms);
}

void KeeperExecutor::write_session(const SessionKey& key, uint64_t offset, std::string_view data,
                                   bool eof) {
  if (keeper_.get() != nullptr) keeper_->write(key_of(key), offset, data, eof);
}

// What a pod's process and a session have in common.
SpawnOrder KeeperExecutor::order_of(const ProcessKey& key, const core::node::PodTemplate& job,
                                    core::node::Command command, LogStore::Paths files,
                                    core::node::DeviceMap devices) const {
  SpawnOrder order{.key = key,
                   .argv = std::move(command.argv),
                   .env = std::move(command.env),
                   .words = std::move(command.words),
                   .secrets = std::move(command.secrets),
                   .cwd = std::move(command.cwd),
                   .stdout_path = std::move(files.out),
                   .stderr_path = std::move(files.err),
                   .permit = runs_users() ? job.permit : nullptr,
                   .devices = std::move(devices)};
  if (!job.mpi.empty()) {
    order.run = run_dirs_.name(key.pod);
    order.mpi = run_dirs_.facts(key.pod);
  }
  if (!order.permit)
    order.settings = core::node::settings_bytes(core::node::settings_of(job, command));
  return order;
}

// A hook is no part of the job: what keeps it from running is the node's fault.
Result<SpawnOrder> KeeperExecutor::hook_order(const Start& start, Fault& fault) {
  const core::node::PodTemplate& job = *start.job;
  const PodId pod = start.order.pod;
  const bool prolog = start.order.step.container == core::node::kProlog;
  fault = Fault::here;
  if (Status may = allowed(job); !may) return may.error();
  const bool as_owner = runs_users();
  if (as_owner && !keeper_->abilities().hooks) return too_old("runs no prologs and epilogs");
  fault = Fault::node;
  if (Status kept = templates_.keep(start.job); !kept) return kept.error();
  Note note{job.grace_ms, job.job_uid, "", log_of(start.order.step.container)};
  note.planned = true;
  note.generation = job.generation;
  note.pod_started_at = start.order.pod_started_at;
  note.devices = start.order.devices;
  note.stop = start.order.stop;
  note.pod_name = core::pod_name(job.job_name, job.job_uid, job.indexed, pod.key());
  auto files = logs_.open(job.job_uid, note.pod_name, note.container);
  if (!files) return files.error();
  core::node::Command command;
  if (!as_owner)
    command = core::node::hook_command(job, pod, node_, prolog ? hooks_.prolog : hooks_.epilog);
  if (!as_owner && job.owner_uid)
    command.env.push_back("MUSTER_OWNER_UID=" + std::to_string(*job.owner_uid));
  SpawnOrder order =
      order_of(key_of(pod, start.order.step), job, std::move(command), std::move(*files), {});
  order.settings.clear();
  order.note = note.text();
  order.contained = true;
  order.not_after = start.order.not_after;
  return order;
}

// The last line that a hook has written, to standard error if there is any; empty: none.
std::string KeeperExecutor::last_line(const Note& note) const {
  for (const bool err : {true, false}) {
    const LogName name{note.job_uid, note.pod_name, note.container, err};
    const LogChunk begin = logs_.read(name, 0, 1);
    const auto size = static_cast<int64_t>(begin.size);
    const std::string text =
        begin.found ? logs_.read(name, std::max<int64_t>(0, size - kLastLineMax), kLastLineMax).data
                    : "";
    const size_t to = text.find_last_not_of(" \t\r\n");
    if (to == std::string::npos) continue;
    const size_t before = text.find_last_of('\n', to);
    return on_one_line(text.substr(before + 1, to - before));
  }
  return "";
}

Result<SpawnOrder> KeeperExecutor::spawn_order(const Start& start, Fault& fault) {
  if (core::node::is_hook(start.order.step.container)) return hook_order(start, fault);
  const core::node::PodTemplate& job = *start.job;
  PodId pod = start.order.pod;
  if (start.order.step.container >= job.containers.size()) {
    return Error{Errc::invalid, "the template has no container"};
  }
  const bool as_owner = runs_users();
  fault = Fault::here;
  if (Status may = allowed(job); !may) return may.error();
  fault = Fault::node;
  if (Status made = prepare_run_dir(pod, start.job); !made) return made.error();
  fault = Fault::here;
  if (!as_owner && !job.inputs_file.empty())
    if (const auto inputs = inputs_of(job); !inputs) return inputs.error();
  fault = Fault::job;
  const core::node::TemplateContainer& limits = job.containers[start.order.step.container];
  const core::Container& container = limits.what;
  core::node::DeviceMap devices = devices_of(job, start.order.step.container, start.order.devices);
  Result<core::node::Command> command =
      as_owner ? core::node::Command{} : command_for(start, devices);
  if (!command) return command.error();
  fault = Fault::here;
  if (!command->secrets.empty() && !keeper_can(&KeeperClient::Abilities::secrets))
    return too_old("does not support secrets");
  if (job.fence_after_ms && !keeper_can(&KeeperClient::Abilities::fences))
    return too_old("does not support muster.dev/fence-after");
  if (job.process.files() && !keeper_can(&KeeperClient::Abilities::files))
    return too_old("does not write output to files");
  if (job.signal && !keeper_can(&KeeperClient::Abilities::files))
    return too_old("does not support muster.dev/signal");
  Note note{job.grace_ms, job.job_uid, "", container.name};
  if (job.plan != nullptr) {
    fault = Fault::node;
    if (Status kept = templates_.keep(start.job); !kept) return kept.error();
    note.planned = true;
    note.generation = job.generation;
    note.level = start.order.level;
    note.used = start.order.used;
    note.pod_started_at = start.order.pod_started_at;
    note.devices = start.order.devices;
  }
  note.pod_name = core::pod_name(job.job_name, job.job_uid, job.indexed, pod.key());
  auto files = logs_.open(job.job_uid, note.pod_name, container.name);
  fault = !files && files.error().code == Errc::unavailable ? Fault::node : Fault::here;
  if (!files) return files.error();
  SpawnOrder order = order_of(key_of(pod, start.order.step), job, std::move(*command),
                              std::move(*files), std::move(devices));
  order.note = note.text();
  if (Status added = add_space(order, job, start.order.step.container); !added)
    return added.error();
  if (Status confined = confine(order, limits); !confined) return confined.error();
  logs_.times().begin(logs_.output(job.job_uid, note.pod_name, container.name),
                      start.order.step.instance, wall_now());
  order.memory_limit_bytes = limits.memory_limit_bytes;
  order.cpu_limit_millis = limits.cpu_limit_millis;
  if (binds_cpus_) order.cpus = limits.cpus;
  order.contained = job.plan != nullptr;
  order.queued = start.order.queued;
  order.not_after = start.order.not_after;
  order.fence_after_ms = job.fence_after_ms;
  order.fence_grace_ms = job.grace_ms;
  return order;
}

bool KeeperExecutor::queues() const {
  return keeper_can(&KeeperClient::Abilities::queue);
}

core::node::Trouble KeeperExecutor::check() {
  return keeper_.get() == nullptr ? core::node::Trouble{} : keeper_->check();
}

kj::Promise<void> KeeperExecutor::settled() {
  return keeper_.get() == nullptr ? kj::READY_NOW : keeper_->settled();
}

void KeeperExecutor::start(const std::vector<Start>& starts) {
  if (keeper_.get() == nullptr) return;  // the node sees that the next inventory lacks them
  std::vector<SpawnOrder> orders;
  std::vector<core::node::ProcessEnd> refused;
  for (const Start& start : starts) {
    Fault fault = Fault::job;
    auto order = spawn_order(start, fault);
    if (order) {
      orders.push_back(std::move(*order));
    } else {
      refused.push_back({.pod = start.order.pod,
                         .step = start.order.step,
                         .exit_code = fault == Fault::job
                                          ? core::node::exit_code_of(*start.job, order.error())
                                          : core::kExitNotHere,
                         .error = order.error().message,
                         .ended_at = boot_now(),
                         .unstarted = fault == Fault::node});
    }
  }
  if (!orders.empty()) keeper_->spawn(std::move(orders));
  if (!refused.empty()) {
    later_.add(kj::evalLater([this, ends = std::move(refused)] { listener_->on_ended(ends); }));
  }
}

void KeeperExecutor::contact(Millis at) {
  if (keeper_.get() != nullptr) keeper_->contact(at);
}

void KeeperExecutor::set_room(uint32_t count) {
  if (keeper_.get() != nullptr) keeper_->set_room(count);
}

void KeeperExecutor::withdraw(const std::vector<PodId>& pods) {
  if (keeper_.get() == nullptr) return;
  for (PodId pod : pods) keeper_->withdraw(key_of(pod, {}));
}

void KeeperExecutor::kill(const std::vector<core::node::KillOrder>& kills) {
  if (keeper_.get() == nullptr) return;  // repeated if the next inventory has the process
  for (const auto& order : kills) keeper_->kill(key_of(order.pod, order.step), order.grace_ms);
}

void KeeperExecutor::signal(const std::vector<core::node::SignalOrder>& signals) {
  if (keeper_.get() == nullptr) return;
  for (const auto& order : signals)
    keeper_->signal(key_of(order.pod, order.step), order.number, order.first_only);
}

void KeeperExecutor::forget(const std::vector<uint64_t>& entries) {
  if (keeper_.get() == nullptr || entries.empty()) return;  // reported and acknowledged again
  keeper_->forget(entries);
}

kj::Promise<kj::AutoCloseFd> KeeperExecutor::open_log(const LogName& name) {
  return open_output(port_, work_dir_.path(), name);
}

void KeeperExecutor::release(const std::vector<PodId>& pods) {
  if (keeper_can(&KeeperClient::Abilities::spaces)) keeper_->release(pods);
}

void KeeperExecutor::keep(const std::vector<PodId>& pods) {
  if (keeper_can(&KeeperClient::Abilities::spaces)) keeper_->keep(pods);
}

void KeeperExecutor::end_all() {
  if (keeper_.get() != nullptr) keeper_->end_all();
}

void KeeperExecutor::on_started(std::vector<core::node::ProcessStart> started) {
  std::erase_if(started, [](const auto& one) { return is_session(one.step); });
  if (!started.empty()) listener_->on_started(started);
}

void KeeperExecutor::on_ended(std::vector<keeper::Ended> ended) {
  std::vector<core::node::ProcessEnd> ends;
  ends.reserve(ended.size());
  for (keeper::Ended& one : ended) {
    if (!is_session(one.step)) {
      const Note note = Note::parse(one.note);
      logs_.close(note.job_uid, note.pod_name);
      logs_.times().end(logs_.output(note.job_uid, note.pod_name, note.container));
      if (one.node_fault()) logs_.look_again();
      if (core::node::is_hook(one.step.container) && one.start && one.exit_code != 0)
        one.error = last_line(note);
      ends.push_back(std::move(one));
    } else if (sessions_ != nullptr) {
      sessions_->on_session_ended(session_end(one));
    }
  }
  if (!ends.empty()) listener_->on_ended(ends);
}

void KeeperExecutor::on_taken(std::vector<InputTaken> taken) {
  if (sessions_ == nullptr) return;
  for (const auto& one : taken)
    if (const auto step = step_of(one.key); is_session(step))
      sessions_->on_session_input(session_of(one.key.pod, step), one.taken, one.closed);
}

void KeeperExecutor::on_full(std::vector<VolumeFull> full) {
  for (const VolumeFull& one : full)
    listener_->on_volume_full(one.pod, "Usage of EmptyDir volume \"" + one.volume +
                                           "\" exceeds the limit \"" + std::to_string(one.limit) +
                                           "\". It uses " + std::to_string(one.used) + " bytes.");
}

void KeeperExecutor::on_keeper_gone(std::string why) {
  // Later: this destroys the client that is calling us.
  later_.add(kj::evalLater([this, why = std::move(why)] {
    keeper_ = nullptr;
    listener_->on_executor_gone(why);
  }));
}

void KeeperExecutor::taskFailed(kj::Exception&& exception) {
  MUSTER_CHECK(false, exception.getDescription().cStr());
}

}  // namespace muster::agent
