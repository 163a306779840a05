// Space: what a container of a pod with volumes sees beside the node's files.
//
// Made from the template by the agent or, where pods run as their owners, by the keeper from its
// permit; carried out by the keeper, which makes the directories (keeper/pod_dirs.hpp), and by the
// process itself before its command (keeper/space_main.hpp).
//
//   SCRATCH/JOB.INDEX.ATTEMPT/VOLUME     an emptyDir volume on disk
//                            /.tmp       a private /tmp; .tmp-var: /var/tmp
//
// Pure.
#pragma once

#include "base/bytes.hpp"
#include "core/node/pod_template.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::core::node {

inline constexpr const char* kPrivateTmp = ".tmp";
inline constexpr const char* kPrivateVarTmp = "-var";  // appended

// A directory of the pod on disk.
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
  std::string source;        // absolute path of a directory on disk or of a secret; else empty
  uint64_t limit_bytes = 0;  // of a volume in memory; 0: none
  std::vector<SpaceFile> files{};  // of a config map
};

struct Space {
  std::string pod_dir;             // absolute; empty: it has none
  std::vector<SpaceDir> dirs;      // in pod_dir
  std::vector<SpaceMount> mounts;  // of the container; one that holds another comes first
  bool private_tmp = false;

  bool any() const { return !dirs.empty() || mounted(); }
  bool mounted() const { return private_tmp || !mounts.empty(); }  // needs a mount namespace
};

// Whether pods of this template need a space, and whether a container of them mounts anything.
bool has_space(const PodTemplate& job);

// `scratch`: the node's directory for pods, absolute; `home`: of the user that the pod runs as;
// `private_tmp`: whether its node or its job wants that.
Space space_of(const PodTemplate& job, size_t container, PodId pod, const std::string& scratch,
               const std::string& home, bool private_tmp);

// The directory of a pod in SCRATCH, and back; nothing: it is no such name.
std::string pod_dir_name(PodId pod);
std::optional<PodId> pod_of_dir(std::string_view name);

// Where the container finds the pod's first emptyDir volume on disk; empty: there is none.
std::string scratch_of(const PodTemplate& job, const Container& container, PodId pod,
                       const std::string& scratch);

void write_space(Writer& out, const Space& space);
Space read_space(Reader& in);

}  // namespace muster::core::node
