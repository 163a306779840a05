// Space: what a container of a pod with volumes sees in addition to the node's files.
//
// Derived from the template by the agent or, where pods run as their owners, from the permit by the
// keeper. The keeper makes the directories (keeper/files/pod_dirs.hpp), and the process itself
// mounts them before its command (keeper/start/space_main.hpp).
//
//   SCRATCH/JOB.INDEX.ATTEMPT/VOLUME     an emptyDir volume on disk
//                            /.tmp       a private /tmp; .tmp-var: /var/tmp
//   MEMORY/JOB.INDEX.ATTEMPT/VOLUME      one in memory that several containers mount
//
// Pure.
#pragma once

#include "base/bytes.hpp"
#include "core/node/pod_template.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::core::node {

// fieldPath of a variable that makes agents without shared volumes in memory refuse the pod.
inline constexpr std::string_view kSharedMemoryMark = "sharedMemory";
inline constexpr const char* kPrivateTmp = ".tmp";
inline constexpr const char* kPrivateVarTmp = "-var";  // appended

// A directory of the pod.
struct SpaceDir {
  std::string name;
  uint64_t limit_bytes = 0;  // 0: none
  bool operator==(const SpaceDir&) const = default;
};

// A file of a config map.
struct SpaceFile {
  std::string path, text;
  int32_t mode = 0644;
};

struct SpaceMount {
  Volume volume;
  VolumeMount mount;
  std::string source;        // absolute path of the pod's directory or of a secret; else empty
  uint64_t limit_bytes = 0;  // of a tmpfs; 0: none
  std::vector<SpaceFile> files{};  // of a config map
};

struct Space {
  std::string pod_dir;             // absolute; empty: it has none
  std::vector<SpaceDir> dirs;      // in pod_dir
  std::vector<SpaceMount> mounts;  // of the container; a mount comes before those below it
  bool private_tmp = false;
  std::string memory_dir{};             // absolute; empty: it has none
  std::vector<SpaceDir> memory_dirs{};  // in memory_dir

  bool has_dirs() const { return !dirs.empty() || !memory_dirs.empty(); }
  bool any() const { return has_dirs() || mounted(); }
  bool mounted() const { return private_tmp || !mounts.empty(); }  // needs a mount namespace
};

// Directories of a node, absolute.
struct SpaceRoots {
  std::string scratch, memory;  // parents of the pods' directories; empty: none are made
  std::string home;             // of the user that the pod runs as
};

// Whether pods of this template need a space.
bool has_space(const PodTemplate& job);
// Whether several of its containers mount the same volume in memory.
bool shares_memory(const PodTemplate& job);

// `private_tmp`: whether the pod's node or job wants it.
Space space_of(const PodTemplate& job, size_t container, PodId pod, const SpaceRoots& roots,
               bool private_tmp);

// The name of a pod's directory in SCRATCH or MEMORY, and back; nullopt: not such a name.
std::string pod_dir_name(PodId pod);
std::optional<PodId> pod_of_dir(std::string_view name);

// Where the container sees the pod's first emptyDir volume on disk; empty: there is none.
std::string scratch_of(const PodTemplate& job, const Container& container, PodId pod,
                       const std::string& scratch);

void write_space(Writer& out, const Space& space);
Space read_space(Reader& in);

}  // namespace muster::core::node
