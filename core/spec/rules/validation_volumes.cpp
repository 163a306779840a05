// Rules of volumes and their mounts, in Kubernetes' words.
#include "core/spec/rules/validation.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/quantity.hpp"
#include "core/spec/values/volumes.hpp"

#include <map>
#include <set>
#include <sstream>

namespace muster::core {
namespace {

constexpr int32_t kModeMax = 0777;

bool has_backstep(const std::string& path) {
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');)
    if (part == "..") return true;
  return false;
}

void validate_relative(const std::string& at, const std::string& path, Violations& found) {
  if (path.starts_with('/')) found.invalid(at, path, "must be a relative path");
  if (has_backstep(path)) found.invalid(at, path, "must not contain '..'");
}

void validate_mode(const std::string& at, std::optional<int32_t> mode, Violations& found) {
  if (mode && (*mode < 0 || *mode > kModeMax))
    found.invalid(at, *mode, "must be a number between 0 and 0777 (octal), both inclusive");
}

void validate_empty_dir(const std::string& at, const Volume& volume, Violations& found) {
  if (!volume.medium.empty() && volume.medium != "Memory")
    found.not_supported(at + ".medium", volume.medium, {"", "Memory"});
  if (volume.size_limit.empty()) return;
  const auto milli = parse_quantity_milli(volume.size_limit);
  if (!milli)
    found.invalid(at + ".sizeLimit", volume.size_limit, milli.error().message);
  else if (*milli < 0)
    found.forbidden(at + ".sizeLimit", "SizeLimit field must be a valid resource quantity");
}

void validate_host_path(const std::string& at, const Volume& volume, Violations& found) {
  if (volume.path.empty())
    found.required(at + ".path");
  else if (has_backstep(volume.path))
    found.invalid(at + ".path", volume.path, "must not contain '..'");
  else if (!volume.path.starts_with('/'))
    found.invalid(at + ".path", volume.path, "must be an absolute path");
  static const std::set<std::string> kTypes = {"",     "Directory",    "DirectoryOrCreate",
                                               "File", "FileOrCreate", "Socket"};
  if (!kTypes.contains(volume.type))
    found.not_supported(at + ".type", volume.type,
                        {"", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"});
}

// A secret or a config map.
void validate_files(const std::string& at, const std::string& member, const std::string& name,
                    const Volume& volume, Violations& found) {
  if (name.empty()) {
    found.required(at + member);
  } else {
    for (std::string& reason : dns_subdomain_errors(name))
      found.invalid(at + member, name, std::move(reason));
  }
  validate_mode(at + ".defaultMode", volume.default_mode, found);
  for (size_t i = 0; i < volume.items.size(); ++i) {
    const VolumeItem& one = volume.items[i];
    const std::string path = item(at + ".items", i);
    if (one.key.empty()) {
      found.required(path + ".key");
    } else {
      for (std::string& reason : config_key_errors(one.key))
        found.invalid(path + ".key", one.key, std::move(reason));
    }
    if (one.path.empty())
      found.required(path + ".path");
    else
      validate_relative(path + ".path", one.path, found);
    validate_mode(path + ".mode", one.mode, found);
  }
}

void validate_volume(const std::string& at, const Volume& volume, std::set<std::string>& names,
                     Violations& found) {
  if (volume.name.empty()) {
    found.required(at + ".name");
  } else {
    for (std::string& reason : dns_label_errors(volume.name))
      found.invalid(at + ".name", volume.name, std::move(reason));
    if (!names.insert(volume.name).second) found.duplicate(at + ".name", volume.name);
  }
  if (volume.kinds > 1) return found.forbidden(at, "may not specify more than 1 volume type");
  switch (volume.kind) {
    case VolumeKind::empty_dir:
      return validate_empty_dir(at + ".emptyDir", volume, found);
    case VolumeKind::host_path:
      return validate_host_path(at + ".hostPath", volume, found);
    case VolumeKind::secret:
      return validate_files(at + ".secret", ".secretName", volume.secret, volume, found);
    case VolumeKind::config_map:
      return validate_files(at + ".configMap", ".name", volume.config_map, volume, found);
    case VolumeKind::other:  // api/kube/objects/refused_fields.hpp refuses them
      return;
  }
}

void validate_volume_mounts(const std::string& at, const Container& container,
                            const std::map<std::string, const Volume*>& volumes,
                            Violations& found) {
  std::set<std::string> paths;
  for (size_t i = 0; i < container.volume_mounts.size(); ++i) {
    const VolumeMount& mount = container.volume_mounts[i];
    const std::string path = item(at, i);
    if (mount.name.empty()) found.required(path + ".name");
    if (!volumes.contains(mount.name)) found.not_found(path + ".name", mount.name);
    if (mount.mount_path.empty())
      found.required(path + ".mountPath");
    else if (!mount.mount_path.starts_with('/'))
      found.invalid(path + ".mountPath", mount.mount_path, "must be an absolute path");
    else if (has_backstep(mount.mount_path))
      found.invalid(path + ".mountPath", mount.mount_path, "must not contain '..'");
    else if (mount.mount_path.find_first_not_of('/') == std::string::npos)
      found.invalid(path + ".mountPath", mount.mount_path, "must not be the root directory");
    if (!paths.insert(mount.mount_path).second)
      found.invalid(path + ".mountPath", mount.mount_path, "must be unique");
    validate_relative(path + ".subPath", mount.sub_path, found);
  }
}

}  // namespace

void validate_volumes(const std::string& path, const PodTemplate& pod, Violations& found) {
  std::set<std::string> names;
  std::map<std::string, const Volume*> volumes;
  for (size_t i = 0; i < pod.volumes.size(); ++i) {
    validate_volume(item(path + ".volumes", i), pod.volumes[i], names, found);
    volumes.emplace(pod.volumes[i].name, &pod.volumes[i]);
  }
  auto check = [&](const std::string& list, const std::vector<Container>& containers) {
    for (size_t i = 0; i < containers.size(); ++i)
      validate_volume_mounts(item(path + list, i) + ".volumeMounts", containers[i], volumes, found);
  };
  check(".containers", pod.containers);
  check(".initContainers", pod.init_containers);
}

}  // namespace muster::core
