// PodConfigs: the config maps that a job's pods use, as they are now in the View.
//
// A job gets a config map of its namespace if both have the same owner, or if the config map is
// shared with everybody (kSharedKey); for other jobs it does not exist. Jobs without an owner, on a
// coordinator that serves one user, get all of them.
#pragma once

#include "api/view/model/view.hpp"
#include "core/spec/fields/config_maps.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace muster::api {

struct PodConfigs {
  core::JobObjectPtr object;
  std::map<std::string, core::KeptPtr> maps;  // those that exist, by name
  std::string missing;                        // what its pods must wait for; empty: nothing
  uint64_t version = 0;                       // changes with the object and the maps' contents

  // The maps' contents.
  core::ConfigMaps data() const;
};
PodConfigs pod_configs(const View& view, const core::JobObjectPtr& object);

// What this pod waits for before its first process can start; empty: nothing, or it has started.
std::string missing_config(const View& view, const core::Job& job, const core::Pod& pod);

// The contents of a stored config map.
core::ConfigDataPtr config_data(const core::Kept& kept);

}  // namespace muster::api
