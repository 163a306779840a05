// Volumes: directories and files that a pod's containers see at paths of their choice (v1 Volume
// and VolumeMount). docs/volumes.md says what each kind is on a node.
//
// Values are kept as written, even invalid ones, as in job_spec.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {
class Reader;
class Writer;
}  // namespace muster

namespace muster::core {

// The Job's annotation; "true": each pod gets its own directories at /tmp and /var/tmp.
constexpr std::string_view kPrivateTmpKey = "muster.dev/private-tmp";
// Label ("true") of nodes whose keeper can mount volumes; pods that need that go only there.
constexpr std::string_view kVolumesLabel = "muster.dev/volumes";
// The variable with the directory of the pod's first emptyDir volume on disk.
constexpr std::string_view kScratchVariable = "MUSTER_SCRATCH";

// Permits and the keeper's protocol use these numbers.
enum class VolumeKind : uint8_t {
  empty_dir = 0,
  host_path = 1,
  secret = 2,
  config_map = 3,
  other = 255
};

// A key of a secret, and the file that it becomes.
struct VolumeItem {
  std::string key, path;
  std::optional<int32_t> mode{};
  bool operator==(const VolumeItem&) const = default;
};

struct Volume {
  std::string name;
  VolumeKind kind = VolumeKind::empty_dir;
  int kinds = 0;           // how many were specified; none means emptyDir
  std::string medium;      // of emptyDir: "" (disk) or "Memory"
  std::string size_limit;  // of emptyDir: a quantity; empty: none
  std::string path;        // of hostPath
  std::string type;        // of hostPath: "", Directory, DirectoryOrCreate, File, FileOrCreate, …
  std::string secret;      // name
  std::string config_map;  // name
  std::vector<VolumeItem> items{};  // of a secret or config map; empty: all of its keys
  std::optional<int32_t> default_mode{};
  bool optional = false;  // the secret or config map, or keys in items, may be missing
  bool operator==(const Volume&) const = default;

  bool on_disk() const { return kind == VolumeKind::empty_dir && medium.empty(); }
};

struct VolumeMount {
  std::string name;  // of the volume
  std::string mount_path;
  std::string sub_path;  // in the volume; empty: all of it
  bool read_only = false;
  bool operator==(const VolumeMount&) const = default;
};

// As bytes, for permits and the keeper's protocol.
void write_volumes(Writer& out, const std::vector<Volume>& volumes);
std::vector<Volume> read_volumes(Reader& in);
void write_mounts(Writer& out, const std::vector<VolumeMount>& mounts);
std::vector<VolumeMount> read_mounts(Reader& in);

}  // namespace muster::core
