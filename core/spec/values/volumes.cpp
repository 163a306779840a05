#include "core/spec/values/volumes.hpp"

#include "base/bytes.hpp"

namespace muster::core {
namespace {

constexpr int32_t kNoMode = -1;

void write_mode(Writer& out, std::optional<int32_t> mode) {
  out.num(int32_t{mode.value_or(kNoMode)});
}

std::optional<int32_t> read_mode(Reader& in) {
  const auto mode = in.num<int32_t>();
  return mode == kNoMode ? std::nullopt : std::optional(mode);
}

}  // namespace

void write_volumes(Writer& out, const std::vector<Volume>& volumes) {
  out.num(static_cast<uint32_t>(volumes.size()));
  for (const Volume& volume : volumes) {
    out.text(volume.name).num(static_cast<uint8_t>(volume.kind));
    out.text(volume.medium).text(volume.size_limit).text(volume.path).text(volume.type);
    out.text(volume.secret).text(volume.config_map).num(static_cast<uint32_t>(volume.items.size()));
    for (const VolumeItem& item : volume.items) {
      out.text(item.key).text(item.path);
      write_mode(out, item.mode);
    }
    write_mode(out, volume.default_mode);
    out.num(uint8_t{volume.optional});
  }
}

std::vector<Volume> read_volumes(Reader& in) {
  std::vector<Volume> volumes;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    Volume& volume = volumes.emplace_back();
    volume.name = in.text();
    volume.kind = static_cast<VolumeKind>(in.num<uint8_t>());
    volume.kinds = 1;
    volume.medium = in.text();
    volume.size_limit = in.text();
    volume.path = in.text();
    volume.type = in.text();
    volume.secret = in.text();
    volume.config_map = in.text();
    for (auto items = in.num<uint32_t>(); items > 0 && in.ok(); --items) {
      VolumeItem& item = volume.items.emplace_back();
      item.key = in.text();
      item.path = in.text();
      item.mode = read_mode(in);
    }
    volume.default_mode = read_mode(in);
    volume.optional = in.num<uint8_t>() != 0;
  }
  return volumes;
}

void write_mounts(Writer& out, const std::vector<VolumeMount>& mounts) {
  out.num(static_cast<uint32_t>(mounts.size()));
  for (const VolumeMount& mount : mounts)
    out.text(mount.name).text(mount.mount_path).text(mount.sub_path).num(uint8_t{mount.read_only});
}

std::vector<VolumeMount> read_mounts(Reader& in) {
  std::vector<VolumeMount> mounts;
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
    VolumeMount& mount = mounts.emplace_back();
    mount.name = in.text();
    mount.mount_path = in.text();
    mount.sub_path = in.text();
    mount.read_only = in.num<uint8_t>() != 0;
  }
  return mounts;
}

}  // namespace muster::core
