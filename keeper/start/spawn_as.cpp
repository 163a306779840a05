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
  mode_t mask = 0;
  uint32_t uid = 0, gid = 0;
  const uint32_t* groups = nullptr;
  size_t groups_count = 0;
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
  umask(plan->mask);
  if (dup2(plan->in, 0) < 0 || dup2(plan->out, 1) < 0 || dup2(plan->err, 2) < 0) fail("dup", errno);
  if (plan->pam != nullptr && !plan->pam->set_limits()) fail("limits of the PAM session", errno);
  for (const ResourceLimit& limit : *plan->limits)
    if (setrlimit(limit.resource, &limit.value) != 0) fail(kLimitsVariable, errno);
  const long id = -1;
  if (syscall(SYS_setgroups, plan->groups_count, plan->groups) != 0 ||
      syscall(SYS_setresgid, plan->gid, plan->gid, plan->gid) != 0 ||
      syscall(SYS_setresuid, plan->uid, plan->uid, plan->uid) != 0 ||
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
  if (!plan->secrets->read(plan->uid, plan->envp)) {
    char text[512] = "";
    plan->secrets->failure(text, sizeof text);
    end(text, plan->secrets->exit_code());
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan->not_after_ms != 0 && boot_now() >= plan->not_after_ms)
    fail("it could not be started while its node's lease lasted", ETIME);
  die_with_keeper(0);
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

// Where the owner's shell would look for it.
std::vector<std::string> programs_for(const core::node::Command& command) {
  const std::string& name = command.argv[0];
  if (name.find('/') != std::string::npos) return {name};
  std::string_view path = kDefaultPath;
  for (const std::string& variable : command.env)
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  std::vector<std::string> candidates;
  search_path(name, path, ".", [&candidates](std::string candidate) {
    candidates.push_back(std::move(candidate));
    return false;
  });
  return candidates;
}

}  // namespace

std::string Spawner::read_report(int fd) {
  if (fd < 0) return "";
  char text[512];
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  return {text, static_cast<size_t>(std::max<ssize_t>(0, size))};
}

std::optional<Spawned> Spawner::spawn_as(const SpawnJob& job, char* stack, int& pidfd,
                                         int& report) {
  Spawned result;
  result.entry = job.token.entry;
  auto refused = [&result](std::string why, int exit_code = core::kExitNotHere) {
    result.exit_code = exit_code;
    result.error = std::move(why);
    return std::move(result);
  };
  auto no_room = [&](std::string why) {
    result.node_fault = true;
    return refused(std::move(why));
  };
  if (!begin(job, job.not_after_ms, result)) return std::nullopt;
  if (result.late) return result;
  if (owners_ == nullptr || job.as->permit == nullptr)
    return refused("this node has no permit to run it as its owner");
  const Permit& permit = *job.as->permit;
  if (const auto why = owners_->refuses(permit, wall_now())) return refused(*why);
  auto command = owners_->command(*job.as, job.pod, job.container);
  if (!command.ok()) return refused(command.error().message, kExitCannotStart);

  std::string token = job.token.text(), session_token = job.token.session_text();
  const core::node::Space space = core::node::space_of(
      permit.job, job.container, job.pod,
      {spaces_.dirs == nullptr ? "" : spaces_.dirs->path(),
       spaces_.dirs == nullptr ? "" : spaces_.dirs->memory_path(), permit.owner.home},
      permit.job.private_tmp || job.as->private_tmp);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return no_room(std::string("pipe: ") + std::strerror(errno));
  Fd reads(ends[0]);
  const Fd writes(ends[1]);
  SpacePlan own{.cwd = command->cwd,
                .home = command->home,
                .terminal = permit.session && permit.session->terminal,
                .report = writes.get(),
                .not_after_ms = job.not_after_ms};
  Fd plan_file;
  if (space.any())
    if (auto why = prepare(job, space, permit.owner.uid, permit.owner.gid, own, plan_file);
        !why.empty())
      return refused(std::move(why));

  std::vector<char*> argv, envp = {token.data()};
  std::string plan_fd = std::to_string(plan_file.get());
  if (plan_file) argv = {const_cast<char*>(kSpaceName), plan_fd.data()};
  if (job.session) envp.push_back(session_token.data());
  const bool has_input = permit.session && permit.session->input;
  const bool terminal = has_input && permit.session->terminal;
  if (terminal) argv.push_back(const_cast<char*>(kTerminalName));
  for (std::string& word : command->argv) argv.push_back(word.data());
  for (std::string& variable : command->env)
    if (!variable.starts_with(kTokenName)) envp.push_back(variable.data());
  argv.push_back(nullptr);
  Secrets secrets(command->secrets);
  secrets.add_to(envp);
  envp.push_back(nullptr);
  // muster-terminal and muster-space look up the command themselves.
  const std::vector<std::string> paths =
      terminal || plan_file ? std::vector<std::string>{kOwnProgram} : programs_for(*command);
  std::vector<const char*> programs;
  for (const std::string& path : paths) programs.push_back(path.c_str());
  programs.push_back(nullptr);

  const uint16_t session = job.session ? job.number : 0;
  auto open_output = [&](bool of_stderr) {
    return owners_->open_output(permit, job.pod, job.container, of_stderr, job.agent_reads,
                                session);
  };
  auto unopenable = [&](const Error& error) {
    return error.code == Errc::unavailable ? no_room(error.message) : refused(error.message);
  };
  const auto out = open_output(false);
  if (!out.ok()) return unopenable(out.error());
  const Fd out_fd(*out);
  for (const bool of_stderr : {false, true})
    result.written.push_back(
        owners_->output_path(permit, job.pod, job.container, of_stderr, session));
  const auto err = open_output(true);
  if (!err.ok()) return unopenable(err.error());
  const Fd err_fd(*err);
  InputPipe input;
  if (has_input && !input.open()) return no_room(std::string("pipe: ") + std::strerror(errno));
  if (cgroups_ != nullptr && !job.session &&
      (cgroups_for_all_ || job.contained || job.limits.any()))
    result.cgroup = cgroups_->take(job.limits);

  std::optional<PamStart> pam;
  if (!owners_->pam().service.empty()) {
    envp.resize(envp.size() + kPamVariablesMax);
    pam.emplace(owners_->pam(), permit.owner.name, permit.owner.uid, envp, limit_,
                owners_->limits());
  }

  OwnerPlan plan;
  plan.pam = pam ? &*pam : nullptr;
  plan.programs = programs.data();
  plan.argv = argv.data();
  plan.envp = envp.data();
  plan.cwd = plan_file ? "/" : command->cwd.c_str();
  plan.home = command->home;
  plan.space = plan_file.get();
  plan.in = has_input ? input.reads.get() : null_fd_;
  plan.out = out_fd.get();
  plan.err = err_fd.get();
  plan.report = writes.get();
  plan.keeper = getpid();
  const std::string name = unborn_name(job.token.keeper);
  plan.name = name.c_str();
  plan.cgroup = result.cgroup != nullptr ? result.cgroup->procs : job.joins_cgroup;
  plan.limit = &limit_;
  plan.limits = &owners_->limits();
  plan.not_after_ms = job.not_after_ms;
  plan.mask = mask_;
  plan.uid = permit.owner.uid;
  plan.gid = permit.owner.gid;
  plan.groups = permit.owner.groups.data();
  plan.groups_count = permit.owner.groups.size();
  plan.secrets = &secrets;
  const uint64_t start_ns = boot_ns();
  const int pid = clone(owner_main, stack + kStackBytes, CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  if (pid < 0) {
    const int error = errno;
    if (result.cgroup != nullptr) cgroups_->recycle(std::move(result.cgroup));
    return no_room(std::string("fork: ") + std::strerror(error));
  }
  result.start = Start{pid, start_ns};
  result.input = std::move(input.writes);
  report = reads.release();
  return result;
}

}  // namespace muster::keeper
