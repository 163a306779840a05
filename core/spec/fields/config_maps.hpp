// ConfigMaps: the config maps that pods use, by name: which ones they need, and their contents.
//
// The coordinator looks them up when a process of a pod is about to start, and sends them in the
// pod's template, which is covered by its permit (trust/permit/permit.hpp). So agent and keeper
// find them in node::PodTemplate::configs for all uses: env, envFrom, volumes.
#pragma once

#include "core/spec/fields/job_spec.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace muster::core {

// The contents of a config map: data as text, binaryData decoded. Each key is in only one of them.
struct ConfigData {
  StringMap text, binary;
  bool operator==(const ConfigData&) const = default;

  const std::string* find(const std::string& key) const {  // null: no such key
    for (const StringMap* map : {&text, &binary})
      if (const auto it = map->find(key); it != map->end()) return &it->second;
    return nullptr;
  }
};
using ConfigDataPtr = std::shared_ptr<const ConfigData>;
// By name. A missing one does not exist, or its owner does not let the job use it.
using ConfigMaps = std::map<std::string, ConfigDataPtr>;

// The keys of a config map, without their values.
struct ConfigKeys {
  std::set<std::string> text, binary;
};

// What must exist before a pod that uses a config map can start.
struct ConfigNeed {
  bool required = false;          // the config map itself
  std::set<std::string> keys{};   // in data
  std::set<std::string> files{};  // in data or binaryData
  bool operator==(const ConfigNeed&) const = default;
};
using ConfigNeeds = std::map<std::string, ConfigNeed>;  // by name, including optional ones

void add_needs(const Container& container, ConfigNeeds& needs);
void add_needs(const Volume& volume, ConfigNeeds& needs);
ConfigNeeds config_needs(const PodTemplate& pod);

// What is missing, in Kubernetes' words; nullopt: nothing. `maps`: the config maps that exist.
std::optional<std::string> missing_config(const ConfigNeeds& needs,
                                          const std::map<std::string, const ConfigKeys*>& maps,
                                          const std::string& ns);

}  // namespace muster::core
