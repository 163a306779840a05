// How the spawner starts a process as another user.
//
// Unlike our own processes, it does not share our memory until its exec: once it runs as that user,
// the user can stop it, or make it wait for one of their directories. So no thread waits for it
// either. What fails before the exec comes back through a pipe, which is read when it has ended.
//
// Until its exec it cannot be recognized by its environment, and the user may stop it for as long
// as they like. So it is named after its keeper, and the kernel kills it with the keeper or, if it
// was stopped before that was arranged, the next keeper does, which need not wait for it.
#include "base/clock.hpp"
#include "base/exec_exit.hpp"
#include "base/fd.hpp"
#include "keeper/kernel/start_fault.hpp"
#include "keeper/start/input_pipe.hpp"
#include "keeper/start/lease.hpp"
#include "keeper/start/search_path.hpp"
#include "keeper/start/spawner.hpp"
#include "keeper/start/terminal.hpp"
#include "keeper/users/secrets.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

struct OwnerPlan {
  const char* const* programs = nullptr;  // tried in this order; ends with null
  char* const* argv = nullptr;
  char** envp = nullptr;
  const char* cwd = nullptr;
  bool home = false;  // falls back to "/" if cwd is missing
  int in = -1, out = -1, err = -1, report = -1, cgroup = -1;
  int keeper = 0;  // our pid
  const char* name = nullptr;
  int space = -1;  // what muster-space reads; -1: it is not run
  const rlimit* limit = nullptr;
  const std::vector<ResourceLimit>* limits = nullptr;
  PamStart* pam = nullptr;   // null: it has no PAM session
  int64_t not_after_ms = 0;  // boot time; 0: none
  const StartSettings* settings = nullptr;
  const core::Owner* owner = nullptr;
  Secrets* secrets = nullptr;
};

// A child that waits, for PAM or because its owner stops it, must not hold other processes' pipes,
// whose readers would wait for their ends, nor the keeper's lock.
void close_all_but(std::array<int, 6> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (const int fd : kept) {
    if (fd < static_cast<int>(from)) continue;
    if (static_cast<unsigned>(fd) > from)
      syscall(SYS_close_range, from, static_cast<unsigned>(fd) - 1, 0);
    from = static_cast<unsigned>(fd) + 1;
  }
  syscall(SYS_close_range, from, ~0u, 0);
}

// In the child, which has a copy of our memory but none of our threads: system calls only, and not
// the C library's set*id(), which would wait for those threads.
int owner_main(void* argument) {
  const auto* plan = static_cast<const OwnerPlan*>(argument);
  auto end = [plan](const char* why, int exit_code) {
    if (write(plan->report, why, std::strlen(why)) < 0) errno = 0;
    _exit(exit_code);
  };
  auto fail = [end](const char* what, int error, int exit_code = core::kExitNotHere) {
    char text[512];
    std::snprintf(text, sizeof text, "%s: %s", what, strerrordesc_np(error));
    end(text, exit_code);
  };
  // `signal` 0: no longer. A thread's children get it when the thread ends, and workers never do.
  auto die_with_keeper = [plan](int signal) {
    prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0);
    if (syscall(SYS_getppid) != plan->keeper) _exit(kExitCannotStart);
  };
  prctl(PR_SET_NAME, plan->name, 0, 0, 0);
  die_with_keeper(SIGKILL);
  setsid();
  close_all_but({plan->in, plan->out, plan->err, plan->report, plan->cgroup, plan->space});
  if (plan->pam != nullptr)
    if (const char* why = plan->pam->open(); why != nullptr) end(why, core::kExitNotHere);
  if (plan->cgroup >= 0 && write(plan->cgroup, "0", 1) < 0) errno = 0;
  setrlimit(RLIMIT_NOFILE, plan->limit);
  if (dup2(plan->in, 0) < 0 || dup2(plan->out, 1) < 0 || dup2(plan->err, 2) < 0) fail("dup", errno);
  if (plan->pam != nullptr && !plan->pam->set_limits()) fail("limits of the PAM session", errno);
  plan->settings->apply();
  for (const ResourceLimit& limit : *plan->limits)  // the site's win over the job's
    if (setrlimit(limit.resource, &limit.value) != 0) fail(kLimitsVariable, errno);
  const long id = -1;
  const uint32_t uid = plan->owner->uid, gid = plan->owner->gid;
  if (syscall(SYS_setgroups, plan->owner->groups.size(), plan->owner->groups.data()) != 0 ||
      syscall(SYS_setresgid, gid, gid, gid) != 0 || syscall(SYS_setresuid, uid, uid, uid) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    fail("becoming the job's owner", errno);
  die_with_keeper(SIGKILL);  // the kernel has forgotten it with the change of user
  // Never continue as root, whatever these calls returned.
  if (syscall(SYS_geteuid) == 0 || syscall(SYS_getuid) == 0 || syscall(SYS_getegid) == 0 ||
      syscall(SYS_setresuid, id, 0, id) == 0)
    fail("becoming the job's owner", EPERM);
  if (plan->space >= 0)
    for (const int fd : {plan->report, plan->space}) fcntl(fd, F_SETFD, 0);
  if (chdir(plan->cwd) != 0 && !(plan->home && chdir("/") == 0)) {
    const int error = errno;
    char what[300];
    std::snprintf(what, sizeof what, "cwd %s", plan->cwd);
    fail(what, error);
  }
  if (const char* file = plan->settings->redirect(); file != nullptr) {
    const int error = errno;
    char what[300];
    std::snprintf(what, sizeof what, "open %s", file);
    fail(what, error);
  }
  if (!plan->secrets->read(uid, plan->envp)) {
    char text[512] = "";
    plan->secrets->failure(text, sizeof text);
    end(text, plan->secrets->exit_code());
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (too_late(plan->not_after_ms))
    fail("it could not be started while its node's lease lasted", ETIME);
  die_with_keeper(0);
  plan->settings->begin_files();
  int error = ENOENT;
  for (const char* const* program = plan->programs; *program != nullptr; ++program) {
    execve(*program, plan->argv, plan->envp);
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
  }
  char what[300];
  std::snprintf(what, sizeof what, "exec %s", plan->argv[0]);
  fail(what, error, is_machines_fault(error) ? core::kExitNotHere : exit_of_exec(error));
  return kExitCannotStart;
}

// Where the owner's shell would look for the program `name`.
std::vector<std::string> programs_for(const std::string& name, const Launch& launch) {
  if (launch.wrapped()) return {kOwnProgram};
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> candidates;
  search_path(name, launch.path, ".", [&candidates](std::string candidate) {
    candidates.push_back(std::move(candidate));
    return false;
  });
  return candidates;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

// What the permit and its order say besides the command.
void follow(const Permit& permit, const SpawnJob& job, const Spaces& spaces, Launch& launch) {
  launch.space = core::node::space_of(
      permit.job, job.container, job.pod,
      {spaces.dirs == nullptr ? "" : spaces.dirs->path(),
       spaces.dirs == nullptr ? "" : spaces.dirs->memory_path(), permit.owner.home},
      permit.job.private_tmp || job.as->private_tmp);
  launch.settings = core::node::settings_of(permit.job, launch.command);
  launch.limits = job.limits;
  launch.contained = job.contained || job.limits.any();
  launch.input = permit.session && permit.session->input;
  launch.terminal = launch.input && permit.session->terminal;
  launch.not_after_ms = job.not_after_ms;
}

}  // namespace

std::string Spawner::read_report(int fd) {
  if (fd < 0) return "";
  char text[512];
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  return {text, static_cast<size_t>(std::max<ssize_t>(0, size))};
}

std::string Spawner::open_outputs_as(const SpawnJob& job, const Permit& permit, Fd& out, Fd& err,
                                     Spawned& result) {
  const uint16_t session = job.session ? job.number : 0;
  for (const bool of_stderr : {false, true}) {
    const auto opened =
        owners_->open_output(permit, job.pod, job.container, of_stderr, job.agent_reads, session);
    if (!opened.ok()) {
      result.node_fault = opened.error().code == Errc::unavailable;
      return opened.error().message;
    }
    (of_stderr ? err : out) = Fd(*opened);
    result.written.push_back(
        owners_->output_path(permit, job.pod, job.container, of_stderr, session));
  }
  return "";
}

std::optional<Spawned> Spawner::spawn_as(const SpawnJob& job, char* stack, int& pidfd,
                                         int& report) {
  Spawned result;
  result.entry = job.token.entry;
  const auto not_here = [&](std::string why) {
    return refused(std::move(result), std::move(why), core::kExitNotHere);
  };
  if (!begin(job, job.not_after_ms, result)) return std::nullopt;
  if (result.late) return result;
  if (owners_ == nullptr || job.as->permit == nullptr)
    return not_here("this node has no permit to run it as its owner");
  const Permit& permit = *job.as->permit;
  if (const auto why = owners_->refuses(permit, wall_now())) return not_here(*why);
  auto command = owners_->command(*job.as, job.pod, job.container);
  if (!command.ok()) return refused(std::move(result), permit.job, command.error());

  Launch launch;
  launch.name(job.token, job.session);
  launch.read(std::move(*command));
  follow(permit, job, spaces_, launch);
  Fd reads, writes;
  if (!open_report(reads, writes)) return no_room(std::move(result), "pipe", errno);
  SpacePlan own = launch.space_plan(writes.get());
  Fd plan_file;
  if (launch.space.any())
    if (auto why = prepare(job, launch.space, permit.owner.uid, permit.owner.gid, own, plan_file);
        !why.empty())
      return not_here(std::move(why));

  const std::string command_name = launch.argv[0];
  launch.wrap(plan_file);
  const std::vector<std::string> paths = programs_for(command_name, launch);
  const std::vector<const char*> programs = pointers_to(paths);
  Secrets secrets(launch.secret_files);
  launch.end(secrets);

  Fd out, err;
  if (auto why = open_outputs_as(job, permit, out, err, result); !why.empty())
    return refused(std::move(result), std::move(why), core::kExitNotHere);
  InputPipe input;
  if (launch.input && !input.open()) return no_room(std::move(result), "pipe", errno);
  result.cgroup = cgroup_for(job, launch);
  std::optional<PamStart> pam;
  if (!owners_->pam().service.empty()) {
    launch.envp.resize(launch.envp.size() + kPamVariablesMax);
    pam.emplace(owners_->pam(), permit.owner.name, permit.owner.uid, launch.envp, limit_,
                owners_->limits());
  }

  const std::string name = unborn_name(job.token.keeper);
  OwnerPlan plan;
  plan.pam = pam ? &*pam : nullptr;
  plan.programs = programs.data();
  plan.argv = launch.argv.data();
  plan.envp = launch.envp.data();
  plan.cwd = plan_file ? "/" : launch.cwd.c_str();
  plan.home = launch.home;
  plan.space = plan_file.get();
  plan.in = launch.input ? input.reads.get() : null_fd_;
  plan.out = out.get();
  plan.err = err.get();
  plan.report = writes.get();
  plan.keeper = getpid();
  plan.name = name.c_str();
  plan.cgroup = result.cgroup != nullptr ? result.cgroup->procs : job.joins_cgroup;
  plan.limit = &limit_;
  plan.limits = &owners_->limits();
  plan.not_after_ms = launch.not_after_ms;
  const StartSettings settings(launch.settings, mask_, job.fresh);
  plan.settings = &settings;
  plan.owner = &permit.owner;
  plan.secrets = &secrets;
  const uint64_t start_ns = boot_ns();
  const int pid = clone(owner_main, stack + kStackBytes, CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  if (pid < 0) return no_room(std::move(result), "fork", errno);
  result.start = Start{pid, start_ns};
  result.input = std::move(input.writes);
  report = reads.release();
  return result;
}

}  // namespace muster::keeper
