// PodDirs: the directories of pods that have volumes, below the node's scratch directory.
//
//   SCRATCH := MUSTER_KEEPER_SCRATCH/INODE | WORK_DIR/scratch     INODE: of the work-dir, in hex
//   SCRATCH/JOB.INDEX.ATTEMPT/VOLUME     0700, the pod's user's (core/node/space.hpp)
//   SCRATCH/.gone-N                      being removed
//   /dev/shm/muster-INODE/…              the same, for volumes in memory that containers share
//
// SCRATCH and the pods' directories belong to us and are 0700 or, once there are pods of several
// users, 0711: users reach their own directories below and nothing else. A pod's directories are
// made before its first process and removed when the agent says that the pod is over; those of pods
// that it no longer knows are removed when it connects (keep()). So nothing is left behind,
// whatever crashed.
//
// Users control their contents: no link is followed, and however deep they are, removing and
// measuring them takes a fixed number of descriptors. A thread does both; every kMeasureMs it
// measures volumes with a limit. The directory in /dev/shm exists only while a pod needs it.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/node/space.hpp"

#include <condition_variable>
#include <cstdint>
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

 private:
  struct Limit {
    bool in_memory = false;
    uint64_t bytes = 0;
  };
  struct Gone {  // to be removed
    bool in_memory = false;
    std::string name;
  };

  PodDirs(Fd dir, std::string path, std::string memory_path, bool shared, Fd work_dir);
  // Calls `act` with the directory, if it exists.
  template <class Act>
  void with_root(bool in_memory, Act act);
  Status make_in(int root, PodId pod, bool in_memory, const std::vector<core::node::SpaceDir>& dirs,
                 uid_t uid, gid_t gid);
  void discard(bool in_memory, const std::string& name);
  void work();
  void measure();

  const Fd dir_;
  const std::string path_, memory_path_;
  const bool shared_;
  const Fd work_dir_;        // made passable for users, who reach theirs through it; none: no need
  std::mutex memory_mutex_;  // held while the directory in memory is made or removed
  std::mutex mutex_;         // guards what follows
  std::condition_variable news_;
  uint64_t gone_ = 0;  // number of the last .gone-N
  std::vector<Gone> to_remove_;
  std::map<std::pair<PodId, std::string>, Limit> limits_;  // by pod and volume
  std::vector<Full> full_;
};

}  // namespace muster::keeper
