#include "core/spec/fields/config_maps.hpp"

namespace muster::core {

void add_needs(const Container& container, ConfigNeeds& needs) {
  for (const EnvSource& source : container.env_from) {
    ConfigNeed& need = needs[source.config_map];
    need.required = need.required || !source.optional;
  }
  for (const EnvVar& variable : container.env) {
    if (!variable.config) continue;
    ConfigNeed& need = needs[variable.config->name];
    if (variable.config->optional) continue;
    need.required = true;
    need.keys.insert(variable.config->key);
  }
}

void add_needs(const Volume& volume, ConfigNeeds& needs) {
  if (volume.kind != VolumeKind::config_map) return;
  ConfigNeed& need = needs[volume.config_map];
  if (volume.optional) return;
  need.required = true;
  for (const VolumeItem& item : volume.items) need.files.insert(item.key);
}

ConfigNeeds config_needs(const PodTemplate& pod) {
  ConfigNeeds needs;
  for (const Volume& volume : pod.volumes) add_needs(volume, needs);
  for (const auto* containers : {&pod.init_containers, &pod.containers})
    for (const Container& container : *containers) add_needs(container, needs);
  return needs;
}

std::optional<std::string> missing_config(const ConfigNeeds& needs,
                                          const std::map<std::string, const ConfigKeys*>& maps,
                                          const std::string& ns) {
  for (const auto& [name, need] : needs) {
    const auto found = maps.find(name);
    if (found == maps.end()) {
      if (need.required) return "configmap \"" + name + "\" not found";
      continue;
    }
    for (const std::string& key : need.keys)
      if (!found->second->text.contains(key))
        return "couldn't find key " + key + " in ConfigMap " + ns + "/" + name;
    for (const std::string& key : need.files)
      if (!found->second->text.contains(key) && !found->second->binary.contains(key))
        return "references non-existent config key: " + key;
  }
  return std::nullopt;
}

}  // namespace muster::core
