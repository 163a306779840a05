#include "drill/process/silence.hpp"

#include "base/fd.hpp"
#include "drill/process/cut.hpp"

#include <cerrno>
#include <cstring>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace muster::cli::drill {
namespace {

// A copy of a process's descriptor. It must not be kept: the socket stays open with it.
Fd descriptor_of(const Process& process, int number) {
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid(), 0)));
  if (!pidfd || process.gone()) return Fd();
  return Fd(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
}

uint64_t drops_of(int socket) {
  uint32_t figures[SK_MEMINFO_VARS] = {};
  socklen_t size = sizeof figures;
  return getsockopt(socket, SOL_SOCKET, SO_MEMINFO, figures, &size) == 0 ? figures[SK_MEMINFO_DROPS]
                                                                         : 0;
}

}  // namespace

Silence::Silence(const Process& coordinator, uint16_t port, std::vector<const Process*> others)
    : coordinator_(&coordinator), port_(port), others_(std::move(others)) {}

Silence::Silence(Silence&& other) noexcept
    : coordinator_(std::exchange(other.coordinator_, nullptr)),
      port_(other.port_),
      others_(std::move(other.others_)),
      dropped_(std::move(other.dropped_)) {}

Result<Silence> Silence::begin(const Process& coordinator, uint16_t port,
                               std::vector<const Process*> others) {
  Silence silence(coordinator, port, std::move(others));
  if (Status s = silence.refresh(); !s) return s.error();
  return silence;
}

Silence::~Silence() {
  if (coordinator_ == nullptr) return;
  (void)filter(*coordinator_, true, false);
  for (const Process* other : others_) (void)filter(*other, false, false);
}

// Its sockets at this port, or those connected to it: the filter on or off.
Status Silence::filter(const Process& process, bool here, bool on) {
  const std::map<uint64_t, int> own = socket_fds(process.pid());
  for (const TcpSocket& socket : sockets_around(process.pid())) {
    const auto descriptor = own.find(socket.inode);
    if (descriptor == own.end() || (here ? socket.local_port : socket.remote_port) != port_)
      continue;
    const Fd copy = descriptor_of(process, descriptor->second);
    if (!copy) {
      if (errno == EBADF || process.gone()) continue;  // it has just been closed
      return unavailable("the sockets of " + process.name() +
                         " cannot be reached: " + std::strerror(errno));
    }
    sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog program{1, &nothing};
    const int zero = 0;
    const int failed =
        on ? setsockopt(copy.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program)
           : setsockopt(copy.get(), SOL_SOCKET, SO_DETACH_FILTER, &zero, sizeof zero);
    if (on && failed != 0)
      return unavailable("a socket of " + process.name() +
                         " takes no filter: " + std::strerror(errno));
    const uint64_t drops = drops_of(copy.get());
    dropped_.try_emplace(socket.inode, Count{drops, drops}).first->second.last = drops;
  }
  return Nothing{};
}

Status Silence::refresh() {
  if (Status s = filter(*coordinator_, true, true); !s) return s;
  for (const Process* other : others_)
    if (Status s = filter(*other, false, true); !s) return s;
  return Nothing{};
}

uint64_t Silence::dropped() const {
  uint64_t packets = 0;
  for (const auto& [inode, count] : dropped_) packets += count.last - count.first;
  return packets;
}

}  // namespace muster::cli::drill
