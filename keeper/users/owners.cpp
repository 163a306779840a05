#include "keeper/users/owners.hpp"

#include "base/files/owned_path.hpp"
#include "base/hex.hpp"
#include "base/network/interfaces.hpp"
#include "core/pod_name.hpp"
#include "keeper/kernel/proc.hpp"
#include "keeper/kernel/start_fault.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

constexpr size_t kRunNameSize = 32;
constexpr const char* kPrologVariable = "MUSTER_KEEPER_PROLOG";
constexpr const char* kEpilogVariable = "MUSTER_KEEPER_EPILOG";
constexpr const char* kHooksAsVariable = "MUSTER_KEEPER_HOOKS_AS";
constexpr const char* kRootPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr const char* kUserPath = "PATH=/usr/local/bin:/usr/bin:/bin";

Error invalid(std::string message) {
  return Error{Errc::invalid, std::move(message), {}};
}

std::optional<uint32_t> whole(const char* text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || *text == '-' || value >= 0xffffffffull) return std::nullopt;
  return static_cast<uint32_t>(value);
}

// Names that become parts of a path.
bool is_file_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string path_of(const OutputName& name) {
  return "logs/" + name.job_uid + "/" + name.pod_name + "." + name.container +
         (name.err ? ".stderr" : ".stdout");
}

// What the output of a container or hook is named after.
std::string output_of(const core::node::PodTemplate& job, size_t container) {
  if (core::node::is_hook(static_cast<uint16_t>(container)))
    return container == core::node::kProlog ? core::node::kPrologLog : core::node::kEpilogLog;
  return job.containers[container].what.name;
}

// A program that the keeper is to run as root, by the variable that names it. Empty: none.
Result<std::string> hook_program(const char* variable) {
  const char* const text = std::getenv(variable);
  const std::string program = text == nullptr ? "" : text;
  if (program.empty()) return program;
  if (program[0] != '/') return invalid(std::string(variable) + " must be an absolute path");
  if (!only_by(0, program))
    return invalid(std::string(variable) + "=" + program +
                   ": it does not exist, or others than root could replace it");
  return program;
}

// In the work-dir, which belongs to the agent: follows no link and never blocks.
int open_beneath(int work_fd, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
  how.mode = (flags & O_CREAT) != 0 ? 0600 : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, work_fd, path.c_str(), &how, sizeof how));
}

// A regular file with a single hard link.
bool is_plain(const struct stat& file) {
  return S_ISREG(file.st_mode) && file.st_nlink == 1;
}

// Ours, and not yet given to its owner.
bool is_new(const struct stat& file) {
  return file.st_uid == 0 && file.st_size == 0;
}

}  // namespace

Result<std::optional<Owners::Settings>> Owners::settings(int work_fd) {
  const char* agent = std::getenv("MUSTER_KEEPER_AGENT");
  const char* key = std::getenv("MUSTER_KEEPER_PERMIT_KEY");
  const char* node = std::getenv("MUSTER_KEEPER_NODE");
  const char* lowest = std::getenv("MUSTER_KEEPER_UID_MIN");
  const char* limits = std::getenv(kLimitsVariable);
  if (agent == nullptr && key == nullptr && node == nullptr) {
    for (const char* variable : {kLimitsVariable, kPamVariable, kPamSecondsVariable,
                                 kPrologVariable, kEpilogVariable, kHooksAsVariable})
      if (std::getenv(variable) != nullptr)
        return invalid(std::string(variable) +
                       " is only for a keeper that runs as root, with MUSTER_KEEPER_AGENT");
    return std::optional<Settings>();
  }
  if (agent == nullptr || key == nullptr || node == nullptr)
    return invalid(
        "MUSTER_KEEPER_AGENT, MUSTER_KEEPER_PERMIT_KEY and MUSTER_KEEPER_NODE belong together");
  if (geteuid() != 0) return invalid("only root can start processes of other users");
  Settings settings;
  settings.work_fd = work_fd;
  settings.work_dir = path_of_fd(work_fd);
  settings.key = key;
  settings.node = node;
  const auto uid = whole(agent);
  if (!uid || *uid == 0)
    return invalid("MUSTER_KEEPER_AGENT must be the uid of the agent's user, which is not root");
  settings.agent_uid = *uid;
  struct stat owner {};
  if (fstat(work_fd, &owner) != 0 || owner.st_uid != *uid)
    return invalid("the work-dir does not belong to uid " + std::to_string(*uid));
  passwd entry{}, *found = nullptr;
  char buffer[4096];
  const bool known = getpwuid_r(*uid, &entry, buffer, sizeof buffer, &found) == 0 && found;
  settings.agent_gid = known ? found->pw_gid : owner.st_gid;
  if (lowest != nullptr) {
    const auto value = whole(lowest);
    if (!value || *value == 0) return invalid("MUSTER_KEEPER_UID_MIN must be a uid above 0");
    settings.uid_min = *value;
  }
  if (limits != nullptr) {
    auto read = read_rlimits(limits);
    if (!read.ok()) return read.error();
    settings.limits = std::move(*read);
  }
  for (auto [variable, program] : {std::pair(kPrologVariable, &settings.prolog),
                                   std::pair(kEpilogVariable, &settings.epilog)}) {
    auto named = hook_program(variable);
    if (!named.ok()) return named.error();
    *program = std::move(*named);
  }
  if (const char* const as = std::getenv(kHooksAsVariable); as != nullptr && *as != '\0') {
    if (std::strcmp(as, "root") != 0 && std::strcmp(as, "owner") != 0)
      return invalid(std::string(kHooksAsVariable) + " must be root or owner");
    settings.hooks_as_root = std::strcmp(as, "root") == 0;
  }
  auto pam = pam_settings();
  if (!pam.ok()) return pam.error();
  settings.pam = std::move(*pam);
  return std::optional<Settings>(std::move(settings));
}

Result<PermitPtr> Owners::accept(std::string_view bytes, std::string_view signature,
                                 std::string_view job) const {
  if (!verify_permit(settings_.key, std::string(bytes) + std::string(job), signature))
    return invalid("the permit is not signed by this node's coordinator");
  auto permit = read_permit(bytes, job);
  if (!permit.ok()) return permit.error();
  if (permit->node != settings_.node)
    return invalid("the permit is for node " + permit->node + ", and this is " + settings_.node);
  if (permit->owner.uid == 0 || permit->owner.uid < settings_.uid_min || permit->owner.gid == 0)
    return invalid("nothing runs as uid " + std::to_string(permit->owner.uid) + ", gid " +
                   std::to_string(permit->owner.gid) + " here: uids begin at " +
                   std::to_string(settings_.uid_min));
  for (const auto& container : permit->job.containers)
    if (!is_file_name(container.what.name)) return invalid("a container's name is not valid");
  if (!is_file_name(permit->job.job_uid) || !is_file_name(permit->job.job_name))
    return invalid("the job's name or uid is not valid");
  return std::make_shared<const Permit>(std::move(*permit));
}

std::optional<std::string> Owners::refuses(const Permit& permit, Millis wall_ms) const {
  if (wall_ms < permit.until_ms) return std::nullopt;
  return "the coordinator's permit for this job has expired";
}

Result<OwnerCommand> Owners::command(const PermitOrder& order, PodId pod, size_t container) const {
  const Permit& permit = *order.permit;
  if (container >= permit.job.containers.size() || pod.job != permit.job.job)
    return invalid("the permit is not for this pod");
  const std::string home = permit.owner.home.empty() ? "/" : permit.owner.home;
  const core::node::NodeFacts node{
      settings_.node,
      home,
      {kUserPath, "HOME=" + home, "USER=" + permit.owner.name, "LOGNAME=" + permit.owner.name,
       "SHELL=/bin/sh", "LANG=C.UTF-8"},
      permit.owner.home,
      settings_.scratch,
      {}};
  const core::Container& what = permit.job.containers[container].what;
  core::node::MpiFacts mpi = order.mpi.checked();
  mpi.network = network_of(mpi.iface);
  mpi.rdma = has_rdma();
  mpi.run_dir = settings_.work_dir + "/run/" + order.run;
  // The run directory is the agent's, and comes first in PATH: only MPI jobs, which are served
  // through it, get one.
  const bool served = !permit.job.mpi.empty() && is_hex(order.run, kRunNameSize);
  const core::node::MpiFacts* const facts = served ? &mpi : nullptr;
  auto command = permit.session
                     ? core::node::session_command(permit.job, what, pod, node, order.devices,
                                                   facts, permit.session->command)
                     : core::node::command_of(permit.job, what, pod, node, order.devices, facts);
  if (!command.ok()) return command.error();
  return OwnerCommand{std::move(*command), what.working_dir.empty()};
}

Result<OwnerCommand> Owners::hook(const PermitOrder& order, PodId pod, uint16_t which) const {
  const Permit& permit = *order.permit;
  const bool prolog = which == core::node::kProlog;
  const std::string& program = prolog ? settings_.prolog : settings_.epilog;
  if (pod.job != permit.job.job) return invalid("the permit is not for this pod");
  if (program.empty())
    return invalid(std::string("root's keeper has no ") + (prolog ? "prolog" : "epilog") +
                   ": set " + (prolog ? kPrologVariable : kEpilogVariable) +
                   " where it is started");
  const core::Owner& owner = permit.owner;
  const std::string home = settings_.hooks_as_root ? "/root"
                           : owner.home.empty()    ? "/"
                                                   : owner.home;
  const std::string user = settings_.hooks_as_root ? "root" : owner.name;
  core::node::NodeFacts node{.node_name = settings_.node};
  node.inherited = {settings_.hooks_as_root ? kRootPath : kUserPath,
                    "HOME=" + home,
                    "USER=" + user,
                    "LOGNAME=" + user,
                    "SHELL=/bin/sh",
                    "LANG=C.UTF-8",
                    "MUSTER_OWNER=" + owner.name,
                    "MUSTER_OWNER_UID=" + std::to_string(owner.uid),
                    "MUSTER_OWNER_GID=" + std::to_string(owner.gid)};
  return OwnerCommand{core::node::hook_command(permit.job, pod, node, program), false};
}

std::string Owners::output_path(const Permit& permit, PodId pod, size_t container, bool err,
                                uint16_t session) const {
  const core::node::PodTemplate& job = permit.job;
  return path_of({job.job_uid, core::pod_name(job.job_name, job.job_uid, job.indexed, pod.key()),
                  output_of(job, container) + (session != 0 ? "~" + std::to_string(session) : ""),
                  err});
}

int Owners::reopen_output(const std::string& path) const {
  const int fd = open_beneath(settings_.work_fd, path, O_WRONLY);
  struct stat found = {};
  if (fd >= 0 && fstat(fd, &found) == 0 && is_plain(found) && found.st_uid >= settings_.uid_min)
    return fd;
  if (fd >= 0) close(fd);
  return -1;
}

Result<int> Owners::open_output(const Permit& permit, PodId pod, size_t container, bool err,
                                bool agent_reads, uint16_t session) const {
  const std::string path = output_path(permit, pod, container, err, session);
  const int fd = open_beneath(settings_.work_fd, path, O_WRONLY | O_APPEND | O_CREAT);
  if (fd < 0) {
    const int error = errno;
    // Anything else is a trap in the job's own folder.
    const bool any = is_machines_fault(error) || error == ENOENT;
    return Error{
        any ? Errc::unavailable : Errc::conflict, "open " + path + ": " + std::strerror(error), {}};
  }
  struct stat found {};
  // Made by an earlier keeper, or for an earlier agent: the agent can read it anyway.
  const auto shared = [&] {
    return found.st_gid == settings_.agent_gid && found.st_mode & S_IRGRP;
  };
  const bool ours = fstat(fd, &found) == 0 && is_plain(found) &&
                    (is_new(found) || (found.st_uid == permit.owner.uid &&
                                       (found.st_gid == settings_.mark_gid || shared())));
  const gid_t group = agent_reads ? settings_.agent_gid : settings_.mark_gid;
  if (!ours || fchown(fd, permit.owner.uid, group) != 0 ||
      fchmod(fd, agent_reads ? 0640 : 0600) != 0) {
    close(fd);
    return Error{Errc::conflict, "open " + path + ": it is not a file of the pod's owner", {}};
  }
  return fd;
}

Result<int> Owners::read_output(const OutputName& name) const {
  for (const std::string& part : {name.job_uid, name.pod_name, name.container})
    if (!is_file_name(part)) return invalid("not the name of an output: " + part);
  const std::string path = path_of(name);
  const int fd = open_beneath(settings_.work_fd, path, O_RDONLY);
  if (fd < 0 && errno == ENOENT) return -1;
  if (fd < 0) return Error{Errc::unavailable, "open " + path + ": " + std::strerror(errno), {}};
  struct stat found {};
  const bool known = fstat(fd, &found) == 0 && is_plain(found);
  if (known && found.st_uid >= settings_.uid_min && found.st_gid == settings_.mark_gid) return fd;
  close(fd);
  if (known && is_new(found)) return -1;  // a process is about to get it
  return Error{Errc::unavailable, "open " + path + ": it is not an output", {}};
}

}  // namespace muster::keeper
