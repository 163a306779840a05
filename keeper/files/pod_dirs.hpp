// PodDirs: the directories of pods that have volumes, below the node's scratch directory.
//
//   SCRATCH := MUSTER_KEEPER_SCRATCH/INODE | WORK_DIR/scratch     INODE: of the work-dir, in hex
//              of pods of several users, without a setting: WORK_DIR.scratch
//   SCRATCH/JOB.INDEX.ATTEMPT/VOLUME     0700, the pod's user's (core/node/space.hpp)
//   SCRATCH/.gone-N                      being removed
//   SCRATCH/.left-N                      what the pod's user may not remove
//   /dev/shm/muster-DEVICE-INODE-RANDOM/…   the same, for volumes in memory that containers share
//
// Where there are pods of several users, the work-dir belongs to the agent, which must not be able
// to put anything in the place of these directories. So all directories on the way to SCRATCH must
// be root's.
//
// SCRATCH and the pods' directories belong to us and are 0700 or, once there are pods of several
// users, 0711: users reach their own directories below and nothing else. A pod's directories are
// made before its first process and removed when the agent says that the pod is over; those of pods
// that it no longer knows are removed when it connects (keep()). So nothing is left behind,
// whatever crashed.
//
// Users control their contents: no link is followed, and however deep they are, removing and
// measuring them takes a fixed number of descriptors. A thread does both, in steps, so that no tree
// holds up another; every kMeasureMs it measures volumes with a limit. A volume is emptied with its
// user's rights: it may contain what others own and its user may not delete. The directory in
// /dev/shm is made when a pod first needs it, and then kept: nobody can know its name before that,
// or take its place later.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/node/space.hpp"
#include "keeper/files/tree_size.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace muster::keeper {

constexpr const char* kScratchSetting = "MUSTER_KEEPER_SCRATCH";

class PodDirs {
 public:
  static constexpr int kMeasureMs = 10'000;

  // A volume that exceeds its limit.
  struct Full {
    PodId pod;
    std::string volume;
    uint64_t used = 0, limit = 0;  // bytes
  };

  // It must live as long as the process, because its thread does. `shared`: pods of several users.
  // The error says why there is no scratch directory.
  static Result<std::unique_ptr<PodDirs>> open(int work_fd, bool shared);

  const std::string& path() const { return path_; }  // absolute
  // Likewise, for volumes in memory; empty: this machine has none for us.
  const std::string& memory_path() const { return memory_path_; }
  // Makes the pod's directories, unless they exist. Any thread may call it.
  Status make(PodId pod, const core::node::Space& space, uid_t uid, gid_t gid);
  // The pod is over.
  void release(PodId pod);
  // Releases all pods but these.
  void keep(const std::set<PodId>& pods);
  // Volumes that the last measurement found full, each once. Any thread may call it.
  std::vector<Full> take_full();
  // Before an orderly exit: removes the directory in memory, if it is empty.
  void leave();

 private:
  struct Limit {
    bool in_memory = false;
    uint64_t bytes = 0;
  };
  struct Gone {  // to be removed
    bool in_memory = false;
    std::string name;
  };

  struct Measuring {  // of a volume
    std::pair<PodId, std::string> volume;
    Limit limit;
    TreeSize size;
  };

  PodDirs(Fd dir, std::string path, std::string memory_path, bool shared);
  // Calls `act` with the directory, if it exists.
  template <class Act>
  void with_root(bool in_memory, Act act);
  Status make_in(int root, PodId pod, bool in_memory, const std::vector<core::node::SpaceDir>& dirs,
                 uid_t uid, gid_t gid);
  void discard(bool in_memory, const std::string& name);
  void remove(int root, const std::string& name);
  void work();
  void begin_measuring();
  bool measures() const { return !measuring_.empty() || !to_measure_.empty(); }
  void measure_some();

  const Fd dir_;
  const std::string path_, memory_path_;
  const bool shared_;
  std::mutex memory_mutex_;  // held while the directory in memory is made
  std::mutex mutex_;         // guards what follows
  std::condition_variable news_;
  uint64_t gone_ = 0;  // number of the last .gone-N
  std::vector<Gone> to_remove_;
  std::map<std::pair<PodId, std::string>, Limit> limits_;  // by pod and volume
  std::vector<Full> full_;
  // Of the thread alone: volumes that are being measured in turn, and those that follow.
  std::deque<Measuring> measuring_;
  std::map<std::pair<PodId, std::string>, Limit> to_measure_;
};

}  // namespace muster::keeper
