// Cgroups: a cgroup v2 for each process, where we may make them.
//
// It catches what sheds both its session and its environment, and it is what limits of memory and
// CPU need. Making and removing one costs as much as starting /bin/true, so those without limits
// are used again: one that is empty goes back to a pool.
//
//   HOME/muster-<keeper>/p<number>      of the pool
//   HOME/muster-<keeper>/l<number>      with limits, for one process
//
// HOME is found, and freed of our own processes, by cgroup_home.hpp.
//
// Always holds: whatever fails here makes the keeper work without, in silence; what cannot be had
// is told by can(). A cgroup is given out only when nothing is in it.
#pragma once

#include "keeper/cgroup_home.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace muster::keeper {

struct Limits {
  uint64_t memory_bytes = 0;  // 0: none
  uint64_t cpu_millis = 0;
  bool any() const { return memory_bytes != 0 || cpu_millis != 0; }
};

// One cgroup, while a process has it.
struct Cgroup {
  std::string name;
  bool limited = false;
  bool killed = false;
  int dir = -1;     // for a process that is born in it
  int procs = -1;   // cgroup.procs: write "0" to join
  int events = -1;  // cgroup.events
  int kill = -1;    // cgroup.kill
  Cgroup() = default;
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
};

class Cgroups {
 public:
  // `keeper`: the random number of the keeper they belong to.
  explicit Cgroups(uint64_t keeper);
  ~Cgroups();
  Cgroups(const Cgroups&) = delete;
  Cgroups& operator=(const Cgroups&) = delete;

  // False: there are none to be had here. At most `most` at a time: each has four descriptors.
  bool create(size_t most);
  bool open();  // those of a keeper that died; false: it had none
  // kCanCgroup and so on (protocol.hpp).
  uint8_t can() const { return can_; }
  // Why a limit cannot be enforced; of no meaning when can() has both.
  const std::string& why() const { return why_; }

  // Any thread. Null: none can be had now. Limits that can() has not are passed over.
  std::unique_ptr<Cgroup> take(Limits limits);
  // It is not needed any more. Its processes are gone, or were told to.
  void recycle(std::unique_ptr<Cgroup> group);
  static bool is_empty(const Cgroup& group);
  static void kill(Cgroup& group);
  // Whether its memory limit has killed something.
  bool out_of_memory(const Cgroup& group) const;

  void kill_all();  // and removes those that are empty
  void remove();

 private:
  std::unique_ptr<Cgroup> make(const Limits& limits);
  bool set(const std::string& name, const char* file, const std::string& value) const;

  bool make_below(const std::string& path);

  std::vector<CgroupHome> homes_;
  std::string name_;  // below a home: "/muster-<keeper>"
  std::string path_;
  std::string why_;
  int dir_ = -1;
  uint8_t can_ = 0;
  size_t most_ = 0;
  std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Cgroup>> pool_;
  size_t out_ = 0;  // given out
  uint64_t last_ = 0;
};

}  // namespace muster::keeper
