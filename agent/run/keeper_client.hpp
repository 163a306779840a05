// KeeperClient: the agent's end of the keeper's socket.
//
// The keeper (keeper/loop/keeper.cpp) is the parent of all processes of this node's pods and
// outlives the agent. It knows processes, not pods: each container, init container and restart in
// place is a separate process. This client starts a keeper if none is running, orders spawns and
// kills, and receives starts and ends.
//
// Invariants: an end is reported only when nothing of the process's session (or cgroup) is left,
// and again after each (re)connect until forget() is called for it (an `unstarted` one is reported
// at most once); a process whose spawn was ordered twice is started once.
//
// Belongs to one KJ thread. Instants are milliseconds of boot time; on the socket they are ages.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/node/command.hpp"
#include "core/node/mpi.hpp"
#include "core/node/pod_template.hpp"
#include "core/node/pulse.hpp"
#include "core/node/values.hpp"
#include "keeper/protocol.hpp"

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// One process of a pod: `instance` counts restarts in place, containers are numbered init
// containers first.
struct ProcessKey {
  PodId pod;
  uint16_t container = 0;
  uint16_t instance = 0;
  auto operator<=>(const ProcessKey&) const = default;
};

struct SpawnOrder {
  ProcessKey key;
  std::vector<std::string> argv;  // argv[0] is looked up in the PATH of `env` when it has no slash
  std::vector<std::string> env;   // "NAME=value"
  std::string words{};            // instead of both: core::node::Command::words
  std::vector<core::node::SecretFile> secrets{};  // requires abilities().secrets
  std::string cwd;                                // absolute
  std::string stdout_path, stderr_path;           // opened for append, created 0600
  std::string note;  // opaque; kept in the spool and returned with the inventory
  // Of its cgroup, where cgroups are available.
  std::optional<uint64_t> memory_limit_bytes{}, cpu_limit_millis{};
  uint32_t cpus = 0;       // how many it gets for itself, if as many are free; ignored by a keeper
                           // without abilities().binds, and for sessions
  bool contained = false;  // wants a cgroup even without limits, where available
  bool queued = false;     // it waits until there is room (set_room())
  std::optional<Millis> not_after{};  // boot time; it must not be started then or later
  // The keeper ends it, with this grace, when the newest contact() is that old. Requires
  // abilities().fences.
  std::optional<Millis> fence_after_ms{};
  Millis fence_grace_ms = 0;
  // For a keeper that starts processes as their owners: then only key, note and the fields from the
  // limits on count.
  core::node::SignedPermitPtr permit{};
  core::node::DeviceMap devices{};
  std::string run{};  // name of the run directory of a pod of an MPI job; else empty
  core::node::MpiFacts mpi{};
  std::string space{};  // of a pod with volumes, without a permit (core/node/space.hpp)
  // What it gives up, without a permit; requires abilities().confines. Capabilities are those of
  // core/spec/fields/security.hpp.
  bool no_new_privileges = false;
  uint64_t dropped_capabilities = 0;
  bool private_tmp = false;  // with a permit: even if that does not ask for it
  std::string settings{};    // without a permit (core/node/template_codec.hpp); empty: none
  // What it reads (write()); requires abilities().input. Otherwise stdin is /dev/null. With a
  // permit, the permit decides.
  bool reads = false, terminal = false;
};

// What the keeper knows at (re)connect: living processes and ends not yet forgotten.
struct Inventory {
  struct Living {
    ProcessKey key;
    std::optional<core::StartOf<Millis>> start;  // absent: it is queued, or is being started
    bool killing = false;                        // a kill was ordered already
    bool queued = false;                         // it was ordered with SpawnOrder::queued
    std::string note;
    core::node::CpuList cpus{};  // that it has for itself
  };
  std::vector<Living> living;
  std::vector<keeper::Ended> ended;
};

// How much of a process's input has been taken.
struct InputTaken {
  ProcessKey key;
  uint64_t taken = 0;   // bytes so far
  bool closed = false;  // no more will be
};

// A pod's volume that exceeds its limit.
struct VolumeFull {
  PodId pod;
  std::string volume;
  uint64_t used = 0, limit = 0;  // bytes
};

class KeeperClient {
 public:
  // Called on the KJ thread, with lists of what has arrived since the last call.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_started(std::vector<core::node::ProcessStart> started) = 0;
    virtual void on_ended(std::vector<keeper::Ended> ended) = 0;
    virtual void on_taken(std::vector<InputTaken> taken) = 0;
    virtual void on_full(std::vector<VolumeFull>) {}
    // The connection broke. The agent exits or calls connect() for a new client: a new keeper
    // reports what the old one lost.
    virtual void on_keeper_gone(std::string why) = 0;
  };

  struct Options {
    std::string
        work_dir;  // 0700, exists; the keeper's lock, socket, spool and log are in work_dir/keeper
    std::string keeper_path;  // the muster-keeper executable
    std::string cluster_id;   // written into the header of each spool segment
    // For a keeper that it starts: where pods' directories are made (empty: in the work-dir), and
    // the maximum size of an output (0: none; absent: the keeper's default).
    std::string scratch_dir{};
    std::optional<uint64_t> output_max_bytes{};
    // Whether to fail at once if a keeper that runs as root, which it cannot start, is not there.
    bool at_once = false;
  };

  // Connects to the running keeper of this work-dir, or starts one. Blocks for at most a few
  // seconds. The inventory is complete when this returns. `unavailable` with a reason when there is
  // no keeper and none can be started; `invalid` when the spool is damaged beyond a torn tail (the
  // caller then makes a new work-dir id).
  static Result<kj::Own<KeeperClient>> connect(kj::UnixEventPort& port, Options options,
                                               Listener& listener, Inventory& inventory);

  // What the keeper can do on this machine.
  struct Abilities {
    bool cgroups = false;  // else a process can escape by leaving its session and its environment
    bool memory_limit = false;  // else such limits are not enforced
    bool cpu_limit = false;
    std::string no_limits{};  // why one of the two is missing
    bool queue = false;       // it starts queued orders on its own
    bool run_as = false;      // it starts processes as their owners, with permits only
    bool secrets = false;     // it reads the files of SpawnOrder::secrets
    bool sessions = false;    // it starts sessions (kSessionBit of keeper/protocol.hpp)
    bool input = false;       // processes can read what write() sends
    bool fences = false;      // it ends processes on its own (SpawnOrder::fence_after_ms)
    bool spaces = false;      // it supports volumes
    bool confines = false;    // processes give up privileges (SpawnOrder::no_new_privileges)
    bool files = false;       // processes write to files of their own (muster.dev/stdout), and get
                              // signals
    bool binds = false;       // processes can have CPUs for themselves
    bool hooks = false;       // with permits, pods have a prolog and an epilog
    bool templates = false;   // it reads templates beside permits (SignedPermit::job)
    bool mounts = false;      // it can give processes their own mounts; else no_mounts says why
    std::string scratch{};    // where pods' directories are; empty: no_scratch says why
    std::string no_scratch{}, no_mounts{};
    std::string memory{};   // where those in memory are; empty: nowhere
    std::string version{};  // of muster; empty: the keeper is too old to say
  };

  virtual ~KeeperClient() noexcept(false) {}
  virtual Abilities abilities() const = 0;
  // Call it once a second: pings the keeper and returns what is known of its health. A keeper too
  // old to answer pings counts as healthy.
  virtual core::node::Trouble check() = 0;
  // Resolves once the listener knows of all ends that the keeper has seen by now; at once if it is
  // too old to answer pings. Rejected: the keeper is gone.
  virtual kj::Promise<void> settled() = 0;
  virtual void spawn(std::vector<SpawnOrder> orders) = 0;
  // How many processes of queued orders may live at once; 0 at first. Requires abilities().queue,
  // as do queued orders and withdraw().
  virtual void set_room(uint32_t count) = 0;
  // The coordinator answered what was sent at this boot time. Ignored by a keeper without fences.
  virtual void contact(Millis at) = 0;
  // Drops an order that is still queued, which is reported as unstarted; others stay.
  virtual void withdraw(const ProcessKey& what) = 0;
  // SIGTERM to the process group, SIGKILL to all that is left after the grace. grace_ms 0: SIGKILL
  // at once. Repeating can only shorten the grace. Ignored if `what` is unknown or has ended; an
  // order that is still queued is dropped.
  virtual void kill(const ProcessKey& what, Millis grace_ms) = 0;
  // Sends a signal to the process, or to its group; nothing happens if it is not running. Requires
  // abilities().files.
  virtual void signal(const ProcessKey& what, int number, bool first_only) = 0;
  // The coordinator has these ends on disk, so the keeper may drop their entries.
  virtual void forget(const std::vector<uint64_t>& entries) = 0;
  // The process's input from `offset` on, and whether nothing follows. Answered by on_taken() once
  // the keeper has taken some of it, or has room for it; then it is sent again.
  virtual void write(const ProcessKey& what, uint64_t offset, std::string_view data, bool eof) = 0;
  // These require abilities().spaces. release() removes the directories of these pods, which are
  // over; keep() those of all others.
  virtual void release(const std::vector<PodId>& pods) = 0;
  virtual void keep(const std::vector<PodId>& pods) = 0;
  // The keeper kills all processes at once and exits (used for an ephemeral `muster run`).
  virtual void end_all() = 0;
};

}  // namespace muster::agent
