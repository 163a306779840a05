// Silence: drops every packet between a coordinator and the others, as a cable that is pulled
// would. For processes of this machine; needs no root if they are ours.
//
// A filter that lets nothing in is attached to the coordinator's port for its peers, from which
// connections to it inherit it, and to both ends of each connection. No connection is closed, and a
// new one gets no answer. The filters end with the sockets.
#pragma once

#include "base/result.hpp"
#include "drill/process/process.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace muster::cli::drill {

class Silence {
 public:
  // Begins. `port`: of the coordinator, for its peers; the processes must outlive this object.
  // unavailable: the kernel does not let us reach their sockets, and nothing is dropped.
  static Result<Silence> begin(const Process& coordinator, uint16_t port,
                               std::vector<const Process*> others);
  Silence(Silence&& other) noexcept;
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence();  // takes the filters off

  // Reaches new connections, and counts. Call it every few milliseconds.
  Status refresh();
  // Packets dropped so far, as of the last refresh().
  uint64_t dropped() const;

 private:
  Silence(const Process& coordinator, uint16_t port, std::vector<const Process*> others);
  Status filter(const Process& process, bool here, bool on);

  const Process* coordinator_;  // null: moved from
  uint16_t port_;
  std::vector<const Process*> others_;
  // What the kernel has counted for a socket, when we first saw it and last.
  struct Count {
    uint64_t first = 0, last = 0;
  };
  std::map<uint64_t, Count> dropped_;  // by the socket's inode
};

}  // namespace muster::cli::drill
