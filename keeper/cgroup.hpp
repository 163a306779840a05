// Cgroups: a cgroup v2 for each process, where we may make them.
//
// It catches what sheds both its session and its environment. Without, sessions and MUSTER_PROCESS
// do the work.
//
// Always holds: whatever fails here makes the keeper work without, in silence.
#pragma once

#include <cstdint>
#include <string>

namespace muster::keeper {

class Cgroups {
 public:
  // `keeper`: the random number of the keeper they belong to.
  explicit Cgroups(uint64_t keeper);
  ~Cgroups();
  Cgroups(const Cgroups&) = delete;
  Cgroups& operator=(const Cgroups&) = delete;

  bool create();  // false: there are none to be had here
  bool open();    // those of a keeper that died; false: it had none
  // Makes one. Returns an open cgroup.procs (write "0" to join), or -1.
  int add(uint64_t entry);
  void kill(uint64_t entry);
  // Removes it if nothing is left in it. False: something is.
  bool remove_if_empty(uint64_t entry);
  void kill_all();  // and removes those that are empty
  void remove();

 private:
  std::string path_;
  int dir_ = -1;
};

}  // namespace muster::keeper
