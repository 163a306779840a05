#include "core/node/space.hpp"

#include "core/spec/values/quantity.hpp"

#include <algorithm>
#include <charconv>

namespace muster::core::node {
namespace {

uint64_t bytes_of(const std::string& quantity) {
  if (quantity.empty()) return 0;
  const auto milli = parse_quantity_milli(quantity);
  return milli && *milli > 0 ? static_cast<uint64_t>((*milli + 999) / 1000) : 0;
}

const Volume* volume_named(const PodTemplate& job, const std::string& name) {
  const auto found = std::find_if(job.volumes.begin(), job.volumes.end(),
                                  [&name](const Volume& one) { return one.name == name; });
  return found == job.volumes.end() ? nullptr : &*found;
}

bool is_shared_memory(const PodTemplate& job, const Volume& volume) {
  if (volume.kind != VolumeKind::empty_dir || volume.on_disk()) return false;
  return std::count_if(
             job.containers.begin(), job.containers.end(), [&volume](const TemplateContainer& one) {
               const auto& mounts = one.what.volume_mounts;
               return std::any_of(
                   mounts.begin(), mounts.end(),
                   [&volume](const VolumeMount& mount) { return mount.name == volume.name; });
             }) > 1;
}

// The files of a config map volume. A missing key was optional, or appears later.
std::vector<SpaceFile> files_of(const PodTemplate& job, const Volume& volume) {
  std::vector<SpaceFile> files;
  const auto map = job.configs.find(volume.config_map);
  if (map == job.configs.end()) return files;
  const int32_t mode = volume.default_mode.value_or(0644);
  if (volume.items.empty())
    for (const auto* values : {&map->second->text, &map->second->binary})
      for (const auto& [key, text] : *values) files.push_back({key, text, mode});
  for (const VolumeItem& item : volume.items)
    if (const std::string* text = map->second->find(item.key); text != nullptr)
      files.push_back({item.path, *text, item.mode.value_or(mode)});
  return files;
}

// Removes repeated and trailing slashes, so that paths compare by their parts.
std::string normal(const std::string& path) {
  std::string out;
  for (const char c : path)
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

}  // namespace

bool has_space(const PodTemplate& job) {
  return !job.volumes.empty() || job.private_tmp;
}

bool shares_memory(const PodTemplate& job) {
  return std::any_of(job.volumes.begin(), job.volumes.end(),
                     [&job](const Volume& volume) { return is_shared_memory(job, volume); });
}

std::string pod_dir_name(PodId pod) {
  return std::to_string(pod.job) + "." + std::to_string(pod.index) + "." +
         std::to_string(pod.attempt);
}

std::optional<PodId> pod_of_dir(std::string_view name) {
  PodId pod;
  auto take = [&name](auto& number, bool last) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{}) return false;
    name.remove_prefix(static_cast<size_t>(end - name.data()));
    if (last) return name.empty();
    if (!name.starts_with('.')) return false;
    name.remove_prefix(1);
    return true;
  };
  const std::string whole(name);
  if (!take(pod.job, false) || !take(pod.index, false) || !take(pod.attempt, true) ||
      pod_dir_name(pod) != whole)
    return std::nullopt;
  return pod;
}

Space space_of(const PodTemplate& job, size_t container, PodId pod, const SpaceRoots& roots,
               bool private_tmp) {
  Space space;
  space.private_tmp = private_tmp;
  for (const Volume& volume : job.volumes) {
    const SpaceDir dir{volume.name, bytes_of(volume.size_limit)};
    if (volume.on_disk())
      space.dirs.push_back(dir);
    else if (is_shared_memory(job, volume))
      space.memory_dirs.push_back(dir);
  }
  if (space.private_tmp)
    for (const char* more : {"", kPrivateVarTmp})
      space.dirs.push_back({std::string(kPrivateTmp) + more, 0});
  if (!space.dirs.empty()) space.pod_dir = roots.scratch + "/" + pod_dir_name(pod);
  if (!space.memory_dirs.empty()) space.memory_dir = roots.memory + "/" + pod_dir_name(pod);
  for (const VolumeMount& mount : job.containers[container].what.volume_mounts) {
    const Volume* const volume = volume_named(job, mount.name);
    if (volume == nullptr) continue;  // admission does not allow this
    SpaceMount& one = space.mounts.emplace_back(SpaceMount{*volume, mount, "", 0, {}});
    one.mount.mount_path = normal(mount.mount_path);
    if (volume->on_disk()) one.source = space.pod_dir + "/" + volume->name;
    if (volume->kind == VolumeKind::config_map) one.files = files_of(job, *volume);
    if (volume->kind == VolumeKind::secret)
      one.source = roots.home + "/.config/muster/secrets/" + volume->secret;
    if (is_shared_memory(job, *volume))
      one.source = space.memory_dir + "/" + volume->name;
    else if (volume->kind == VolumeKind::empty_dir && !volume->on_disk())
      one.limit_bytes = bytes_of(volume->size_limit);
  }
  std::stable_sort(space.mounts.begin(), space.mounts.end(),
                   [](const SpaceMount& a, const SpaceMount& b) {
                     return a.mount.mount_path < b.mount.mount_path;
                   });
  return space;
}

std::string scratch_of(const PodTemplate& job, const Container& container, PodId pod,
                       const std::string& scratch) {
  const auto first = std::find_if(job.volumes.begin(), job.volumes.end(),
                                  [](const Volume& one) { return one.on_disk(); });
  if (first == job.volumes.end() || scratch.empty()) return "";
  for (const VolumeMount& mount : container.volume_mounts)
    if (mount.name == first->name && mount.sub_path.empty()) return mount.mount_path;
  return scratch + "/" + pod_dir_name(pod) + "/" + first->name;
}

void write_space(Writer& out, const Space& space) {
  out.text(space.pod_dir).num(uint8_t{space.private_tmp});
  out.num(static_cast<uint32_t>(space.dirs.size()));
  for (const SpaceDir& dir : space.dirs) out.text(dir.name).num(dir.limit_bytes);
  std::vector<Volume> volumes;
  std::vector<VolumeMount> mounts;
  for (const SpaceMount& one : space.mounts) {
    volumes.push_back(one.volume);
    mounts.push_back(one.mount);
  }
  write_volumes(out, volumes);
  write_mounts(out, mounts);
  for (const SpaceMount& one : space.mounts) {
    out.text(one.source).num(one.limit_bytes).num(static_cast<uint32_t>(one.files.size()));
    for (const SpaceFile& file : one.files) out.text(file.path).text(file.text).num(file.mode);
  }
  out.text(space.memory_dir).num(static_cast<uint32_t>(space.memory_dirs.size()));
  for (const SpaceDir& dir : space.memory_dirs) out.text(dir.name).num(dir.limit_bytes);
}

Space read_space(Reader& in) {
  Space space;
  space.pod_dir = in.text();
  space.private_tmp = in.num<uint8_t>() != 0;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    SpaceDir& dir = space.dirs.emplace_back();
    dir.name = in.text();
    dir.limit_bytes = in.num<uint64_t>();
  }
  std::vector<Volume> volumes = read_volumes(in);
  std::vector<VolumeMount> mounts = read_mounts(in);
  for (size_t i = 0; i < std::min(volumes.size(), mounts.size()) && in.ok(); ++i) {
    SpaceMount& one = space.mounts.emplace_back();
    one.volume = std::move(volumes[i]);
    one.mount = std::move(mounts[i]);
    one.source = in.text();
    one.limit_bytes = in.num<uint64_t>();
    for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
      SpaceFile& file = one.files.emplace_back();
      file.path = in.text();
      file.text = in.text();
      file.mode = in.num<int32_t>();
    }
  }
  if (in.rest().empty()) return space;  // from an earlier agent
  space.memory_dir = in.text();
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    SpaceDir& dir = space.memory_dirs.emplace_back();
    dir.name = in.text();
    dir.limit_bytes = in.num<uint64_t>();
  }
  return space;
}

}  // namespace muster::core::node
