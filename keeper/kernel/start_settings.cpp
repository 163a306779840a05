#include "keeper/kernel/start_settings.hpp"

#include "base/files/trusted_links.hpp"
#include "base/process/in_child.hpp"
#include "core/spec/values/rlimits.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::keeper {

StartSettings::StartSettings(const core::ProcessSettings& settings, mode_t mask, bool fresh)
    : mask_(settings.umask ? static_cast<mode_t>(*settings.umask) : mask),
      nice_(settings.nice.value_or(0)),
      out_(settings.out),
      err_(settings.err),
      truncate_(fresh && !settings.append),
      joined_(settings.joined) {
  for (const auto& [name, value] : settings.soft_limits)
    if (const auto* known = core::find_resource(name)) limits_.push_back({known->resource, value});
}

MUSTER_IN_CHILD void StartSettings::apply() const {
  umask(mask_);
  const SoftLimit* const limits = limits_.data();
  for (size_t i = 0, count = limits_.size(); i < count; ++i) {
    rlimit now{};
    if (getrlimit(limits[i].resource, &now) != 0) continue;
    now.rlim_cur = limits[i].value < now.rlim_max ? limits[i].value : now.rlim_max;
    setrlimit(limits[i].resource, &now);
  }
  if (nice_ == 0) return;
  const int own = getpriority(PRIO_PROCESS, 0);
  const int wanted = own + nice_ < core::kNiceMax ? own + nice_ : core::kNiceMax;
  setpriority(PRIO_PROCESS, 0, wanted);
  // Where the kernel shares the CPUs between sessions, niceness counts only within one, and the
  // session's own counts among them (sched(7), autogroup).
  const int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (group < 0) return;
  const char text[] = {static_cast<char>(wanted >= 10 ? '1' : '0'),
                       static_cast<char>('0' + (wanted < 0 ? 0 : wanted % 10))};
  if (write(group, text, sizeof text) < 0) errno = 0;  // at most ten a second may be set
  close(group);
}

MUSTER_IN_CHILD StartSettings::Refused StartSettings::redirect(char* text, size_t size) const {
  const char* const paths[] = {out_.c_str(), err_.c_str()};
  for (int i = 0; i < 2; ++i) {
    if (paths[i][0] == '\0') continue;
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
    UntrustedLink link;
    const int fd = open_by_trusted_links(paths[i], flags | O_NONBLOCK, 0666,
                                         static_cast<uid_t>(syscall(SYS_geteuid)), link);
    if (fd < 0 && *link.path != '\0') {
      std::snprintf(text, size, "%s is a symbolic link of uid %u", link.path, link.owner);
      return {paths[i], 0, text,
              "output follows only those of the pod's user and of root: name the directory that "
              "it points to (--output, --error)"};
    }
    if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0)
      return {paths[i], errno, nullptr, way_out(errno)};
    const bool both = i == 0 && paths[1][0] == '\0';
    if (dup2(fd, 1 + i) < 0 || (both && dup2(fd, 2) < 0)) return {paths[i], errno};
    close(fd);
  }
  if (joined_ && dup2(1, 2) < 0) return {"stdout", errno};
  return {};
}

MUSTER_IN_CHILD const char* StartSettings::way_out(int error) {
  switch (error) {
    case ENOENT:
      return "create its directory on this node, or choose another file (--output, --error)";
    case ELOOP:
      return "it is a symbolic link, and output follows none: remove it, or name the file that it "
             "points to";
    case EISDIR:
      return "name a file in it";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a file that the pod's user may write on this node (--output, --error)";
    case ENXIO:
      return "nothing reads this FIFO: start its reader first";
    default:
      return nullptr;
  }
}

MUSTER_IN_CHILD void StartSettings::begin_files() const {
  if (!truncate_) return;
  const char* const paths[] = {out_.c_str(), err_.c_str()};
  for (int i = 0; i < 2; ++i)  // others, such as devices, cannot be emptied
    if (paths[i][0] != '\0' && ftruncate(1 + i, 0) < 0) errno = 0;
}

}  // namespace muster::keeper
