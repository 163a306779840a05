#include "api/view/query/pod_configs.hpp"

#include "base/text/json.hpp"
#include "core/spec/fields/owner.hpp"

#include <kj/encoding.h>

#include <utility>

namespace muster::api {
namespace {

constexpr uint64_t kSeed = 14695981039346656037u, kPrime = 1099511628211u;  // FNV-1a

void mix(uint64_t& hash, uint64_t value) {
  for (int i = 0; i < 8; ++i, value >>= 8) hash = (hash ^ (value & 0xff)) * kPrime;
}

bool may_use(const core::JobObject& job, const Shown& map) {
  const auto owner = core::owner_uid(job.meta.annotations);
  return !owner || map.kept->kept->owner == owner || map.kept->facts.shared;
}

}  // namespace

core::ConfigDataPtr config_data(const core::Kept& kept) {
  auto data = std::make_shared<core::ConfigData>();
  const Json json = Json::parse(kept.json, nullptr, false);
  MUSTER_CHECK(json.is_object(), kept.id);
  data->text = json.value("data", core::StringMap());
  for (const auto& [key, value] : json.value("binaryData", core::StringMap())) {
    const auto bytes = kj::decodeBase64(kj::arrayPtr(value.data(), value.size()));
    data->binary[key].assign(bytes.asChars().begin(), bytes.size());
  }
  return data;
}

core::ConfigMaps PodConfigs::data() const {
  core::ConfigMaps out;
  for (const auto& [name, kept] : maps) out.emplace(name, config_data(*kept));
  return out;
}

PodConfigs pod_configs(const View& view, const core::JobObjectPtr& object) {
  PodConfigs out{.object = object, .version = kSeed};
  const core::ConfigNeeds needs = core::config_needs(object->spec.pod);
  mix(out.version, static_cast<uint64_t>(object->meta.generation));
  std::map<std::string, const core::ConfigKeys*> keys;
  for (const auto& [name, need] : needs) {
    const auto shown = view.kept(core::KeptKind::config_map, object->meta.ns, name);
    const bool there = shown && may_use(*object, *shown);
    mix(out.version, there ? shown->kept->kept->id : 0);
    mix(out.version, there ? shown->version : 0);
    if (!there) continue;
    out.maps.emplace(name, shown->kept->kept);
    keys.emplace(name, &shown->kept->facts.keys);
  }
  out.missing = core::missing_config(needs, keys, object->meta.ns).value_or("");
  return out;
}

std::string missing_config(const View& view, const core::Job& job, const core::Pod& pod) {
  if (!pod.bound() || pod.started_at || pod.ended || pod.terminating()) return {};
  return pod_configs(view, job.object_ptr()).missing;
}

}  // namespace muster::api
