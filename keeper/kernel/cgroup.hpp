// Cgroups: a cgroup v2 for each process that needs one, where we may create them.
//
// A cgroup catches descendants that leave their session and drop their environment, and memory and
// CPU limits need one. Creating and removing one costs as much as starting /bin/true, so cgroups
// without limits are pooled and reused once empty.
//
//   HOME/muster-<keeper>/p<number>      of the pool
//   HOME/muster-<keeper>/l<number>      with limits, for one process
//
// cgroup_home.hpp finds HOME and moves our own processes out of it.
//
// Invariants: no failure here is an error; the keeper works without the cgroup, and can() says what
// is available. take() only returns a cgroup that is empty.
#pragma once

#include "core/usage.hpp"
#include "keeper/kernel/cgroup_home.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace muster::keeper {

struct Limits {
  uint64_t memory_bytes = 0;  // 0: none
  uint64_t cpu_millis = 0;
  int nice = 0;        // its weight among other cgroups, as that of a process this nice
  std::string cpus{};  // which it may use, as "0-3,8"; empty: all. Processes cannot leave these
  bool any() const { return memory_bytes != 0 || cpu_millis != 0 || nice != 0 || !cpus.empty(); }
};

// One cgroup, while a process has it.
struct Cgroup {
  std::string name;
  bool limited = false;
  bool killed = false;
  int dir = -1;     // to start a process in it
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
  // `keeper`: the random number of the keeper that owns them.
  explicit Cgroups(uint64_t keeper);
  ~Cgroups();
  Cgroups(const Cgroups&) = delete;
  Cgroups& operator=(const Cgroups&) = delete;

  // False: cgroups are not available here. At most `most` are in use at a time, because each takes
  // four descriptors.
  bool create(size_t most);
  bool open();  // those of a dead keeper; false: it had none
  // kCanCgroup and so on (protocol.hpp).
  uint8_t can() const { return can_; }
  // Why a limit cannot be enforced; meaningless if can() has both.
  const std::string& why() const { return why_; }

  // Any thread. Null: none is available now. Limits that can() lacks are ignored, and so are CPUs
  // without the controller `cpuset`.
  std::unique_ptr<Cgroup> take(Limits limits);
  // Gives back a cgroup whose processes are gone.
  void recycle(std::unique_ptr<Cgroup> group);
  static bool is_empty(const Cgroup& group);
  static void kill(Cgroup& group);
  // Whether its memory limit has killed something.
  bool out_of_memory(const Cgroup& group) const;
  // Replaces what is known of one process by what all in the cgroup have used, if it has had no
  // others before.
  void measure(const Cgroup& group, core::Usage& used) const;

  void kill_all();  // also removes those that are empty
  void remove();

 private:
  std::unique_ptr<Cgroup> make(const Limits& limits);
  bool sets_cpus();
  bool set(const std::string& name, const char* file, const std::string& value) const;

  bool make_below(const std::string& path);

  std::vector<CgroupHome> homes_;
  std::string name_;  // below a home: "/muster-<keeper>"
  std::string path_;
  std::string why_;
  int dir_ = -1;
  uint8_t can_ = 0;
  std::once_flag cpus_asked_;
  bool sets_cpus_ = false;  // valid once asked
  size_t most_ = 0;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Cgroup>> pool_;
  size_t out_ = 0;  // in use
  uint64_t last_ = 0;
};

}  // namespace muster::keeper
