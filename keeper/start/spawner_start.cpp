// How the spawner starts a process: from an agent's order on a node of one user, from a permit
// where processes run as their owners. These differ in who says what is to be started and in whose
// files its output goes to; from there on, one path leads to the child (child.hpp).
#include "base/clock.hpp"
#include "base/exec_exit.hpp"
#include "base/fd.hpp"
#include "keeper/kernel/start_fault.hpp"
#include "keeper/start/child.hpp"
#include "keeper/start/input_pipe.hpp"
#include "keeper/start/spawner.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

// What the permit and its order say besides the command.
void follow(const Permit& permit, const SpawnJob& job, const Spaces& spaces, Launch& launch) {
  launch.space = core::node::space_of(
      permit.job, job.container, job.pod,
      {spaces.dirs == nullptr ? "" : spaces.dirs->path(),
       spaces.dirs == nullptr ? "" : spaces.dirs->memory_path(), permit.owner.home},
      permit.job.private_tmp || job.as->private_tmp);
  launch.settings = core::node::settings_of(permit.job, launch.command);
  launch.limits = job.limits;
  launch.cpus = job.cpus;
  launch.contained = job.contained || job.limits.any();
  launch.input = permit.session && permit.session->input;
  launch.terminal = launch.input && permit.session->terminal;
}

// A pipe for what fails before the exec. False: see errno.
bool open_report(Fd& reads, Fd& writes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  reads = Fd(ends[0]);
  writes = Fd(ends[1]);
  return true;
}

}  // namespace

bool Spawner::begin(const SpawnJob& job, int64_t not_after_ms, Spawned& result) {
  if (job.record == nullptr) return true;
  result.late = too_late(not_after_ms);  // spares it all that follows
  return result.late || spool_.begin(*job.record);
}

bool Spawner::read(const SpawnJob& job, bool sound, Launch& launch, Spawned& result) const {
  const auto refuse = [&result](std::string why, int exit_code) {
    result.error = std::move(why);
    result.exit_code = exit_code;
    return false;
  };
  if (!sound) return refuse("order: it is malformed", kExitCannotStart);
  if (job.as) {
    if (owners_ == nullptr || job.as->permit == nullptr)
      return refuse("this node has no permit to run it as its owner", core::kExitNotHere);
    const Permit& permit = *job.as->permit;
    if (job.hook()) {  // it may outlive the permit
      auto program = owners_->hook(*job.as, job.pod, job.container);
      if (!program.ok()) return refuse(program.error().message, core::kExitNotHere);
      launch.take(std::move(*program));
      launch.contained = true;
      return true;
    }
    if (auto why = owners_->refuses(permit, wall_now()))
      return refuse(std::move(*why), core::kExitNotHere);
    auto command = owners_->command(*job.as, job.pod, job.container);
    if (!command.ok())
      return refuse(command.error().message, core::node::exit_code_of(permit.job, command.error()));
    launch.take(std::move(*command));
    follow(permit, job, spaces_, launch);
  }
  if (launch.argv.empty() || launch.argv[0][0] == '\0')
    return refuse("exec: no command: No such file or directory", kExitNotFound);
  return true;
}

std::string Spawner::prepare(const SpawnJob& job, const Launch& launch, int report, Fd& file) {
  const core::node::Space& space = launch.space;
  if (space.mounted() && !spaces_.no_mounts.empty())
    return "this node cannot mount volumes: " + spaces_.no_mounts;
  if (space.has_dirs() && spaces_.dirs == nullptr)
    return "this node has no scratch directory: " + spaces_.no_dirs;
  SpacePlan plan = launch.space_plan(report);
  if (job.session) {
    plan.joins = job.joins_pid;
  } else {
    const core::Owner* const owner = job.owner();
    if (space.has_dirs())
      if (Status made = spaces_.dirs->make(job.pod, space, owner ? owner->uid : geteuid(),
                                           owner ? owner->gid : getegid());
          !made.ok())
        return made.error().message;
    plan.space = space;
  }
  if (!space.mounted()) return "";
  plan.work_dir = spaces_.work_dir;
  file = plan.file();
  return file ? "" : "no memory to describe its volumes";
}

std::string Spawner::open_own(const SpawnJob& job, std::string_view path, Output& output,
                              Spawned& result) {
  std::string name(path);
  const Outputs::Opened opened = outputs_.open(name, job.fresh);
  output.fd = opened.fd;
  if (!opened.pooled) output.own = Fd(opened.fd);
  result.node_fault = output.fd < 0;
  if (result.node_fault) return "open " + name + ": " + std::strerror(errno);
  result.written.push_back(name);
  result.outputs.push_back(std::move(name));
  return "";
}

std::string Spawner::open_outputs(const SpawnJob& job, const Launch& launch, Output& out,
                                  Output& err, Spawned& result) {
  if (!job.as) {
    std::string why = open_own(job, launch.out, out, result);
    if (!why.empty() || launch.err != launch.out)
      return why.empty() ? open_own(job, launch.err, err, result) : why;
    err.fd = out.fd;
    return "";
  }
  const Permit& permit = *job.as->permit;
  const uint16_t session = job.session ? job.number : 0;
  for (const bool of_stderr : {false, true}) {
    const auto opened =
        owners_->open_output(permit, job.pod, job.container, of_stderr, job.agent_reads, session);
    if (!opened.ok()) {
      result.node_fault = opened.error().code == Errc::unavailable;
      return opened.error().message;
    }
    Output& output = of_stderr ? err : out;
    output.own = Fd(output.fd = *opened);
    result.written.push_back(
        owners_->output_path(permit, job.pod, job.container, of_stderr, session));
  }
  return "";
}

void Spawner::bind(const SpawnJob& job, Launch& launch, Child& child, Spawned& result) {
  if (job.session) {
    result.cpus = job.joins_cpus;
  } else {
    result.cpus = cpus_.take(job.token.entry, launch.cpus);
    if (result.cpus.empty()) result.cpus_missing = launch.cpus;
    launch.limits.cpus = core::node::cpu_list_text(result.cpus);
  }
  launch.bind(result.cpus);
  child.cpus = CpuMask(result.cpus);
}

std::unique_ptr<Cgroup> Spawner::cgroup_for(const SpawnJob& job, const Launch& launch) {
  const bool wanted = cgroups_for_all_ || launch.contained || !launch.limits.cpus.empty();
  if (cgroups_ == nullptr || !wanted || job.session) return nullptr;
  Limits limits = launch.limits;
  limits.nice = launch.settings.nice.value_or(0);
  return cgroups_->take(limits);
}

Spawned Spawner::refused(Spawned result, std::string why, int exit_code) {
  if (result.cgroup != nullptr) cgroups_->recycle(std::move(result.cgroup));
  result.exit_code = exit_code;
  result.error = std::move(why);
  return result;
}

Spawned Spawner::no_room(Spawned result, const char* what) {
  result.node_fault = true;
  return refused(std::move(result), std::string(what) + ": " + std::strerror(errno),
                 core::kExitNotHere);
}

std::optional<Spawned> Spawner::start(const SpawnJob& job, char* stack, int& pidfd, int& report) {
  Spawned result;
  result.entry = job.token.entry;
  Launch launch;
  launch.name(job.token, job.session);
  launch.last.not_after_ms = job.not_after_ms;
  const bool sound = job.as || launch.read(job.order);
  if (!begin(job, launch.last.not_after_ms, result)) return std::nullopt;
  if (result.late || !read(job, sound, launch, result)) return result;

  const core::Owner* const owner = job.owner();
  Fd plan_file, reads, writes;
  if ((owner != nullptr || launch.space.any()) && !open_report(reads, writes))
    return no_room(std::move(result), "pipe");
  if (launch.space.any())
    if (auto why = prepare(job, launch, writes.get(), plan_file); !why.empty())
      return refused(std::move(result), std::move(why), core::kExitNotHere);
  launch.wrap(plan_file);
  Secrets secrets(launch.secret_files);
  Child child;
  bind(job, launch, child, result);
  child.programs = launch.programs(owner == nullptr);
  launch.end(secrets);

  Output out, err;
  if (auto why = open_outputs(job, launch, out, err, result); !why.empty())
    return refused(std::move(result), std::move(why), core::kExitNotHere);
  InputPipe input;
  if (launch.input && !input.open()) return no_room(std::move(result), "open a pipe");
  result.cgroup = cgroup_for(job, launch);
  std::optional<PamStart> pam;
  const bool plain = owner == nullptr && !launch.input && !plan_file;
  const ChildFds::Set few = plain ? child_fds_.take(out.fd, err.fd) : ChildFds::Set();
  if (owner != nullptr) {
    child.owner = owner;
    child.name = unborn_name(job.token.keeper);
    child.keeper = getpid();
    child.limits = &owners_->limits();
    if (!owners_->pam().service.empty()) {
      launch.envp.resize(launch.envp.size() + kPamVariablesMax);
      pam.emplace(owners_->pam(), owner->name, owner->uid, launch.envp, limit_, owners_->limits());
      child.pam = &*pam;
    }
  }
  child.last = &launch.last;
  child.argv = launch.argv.data();
  child.envp = launch.envp.data();
  child.in = few ? child_fds_.null() : launch.input ? input.reads.get() : null_fd_;
  child.out = few ? few.out() : out.fd;
  child.err = few ? few.err() : err.fd;
  child.shared_from = few ? child_fds_.end() : -1;
  child.report = writes.get();
  child.space = plan_file.get();
  child.cgroup = result.cgroup != nullptr ? result.cgroup->procs : job.joins_cgroup;
  child.files = &limit_;
  child.secrets = &secrets;
  const StartSettings settings(launch.settings, mask_, job.fresh);
  child.settings = &settings;
  const bool born_there = born_in_cgroup_ && owner == nullptr;
  const uint64_t start_ns = boot_ns();
  const int pid =
      child.start(born_there ? result.cgroup.get() : nullptr, stack, kStackBytes, &pidfd);
  if (pid < 0) return no_room(std::move(result), "fork");
  if (child.failed) {
    waitpid(pid, nullptr, 0);
    close(pidfd);
    result.late = child.failed.what == kTooLate;
    result.node_fault = child.failed.what == kDescriptors;
    char text[512];
    const size_t size = child.why(text, sizeof text);
    return refused(std::move(result), {text, size}, child.failed.exit_code);
  }
  result.start = Start{pid, start_ns};
  result.input = std::move(input.writes);
  result.unborn = owner != nullptr || plan_file;
  if (result.unborn) report = reads.release();
  return result;
}

}  // namespace muster::keeper
