// KeptView: a kept object in the View, with what lists select by.
#pragma once

#include "base/clock.hpp"
#include "core/kept.hpp"
#include "core/spec/config_maps.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

struct KeptFacts {
  core::StringMap labels;
  bool shared = false;               // of a config map: everybody may read it (kSharedKey)
  core::ConfigKeys keys;             // of a config map
  bool terminating = false;          // of a namespace: it is being deleted
  std::optional<Millis> created_ms;  // of these two
  std::map<std::string, std::string, std::less<>> fields;  // for example "involvedObject.name"
};
// An annotation of a config map, which only operators and admins may set.
constexpr std::string_view kSharedKey = "muster.dev/shared";
KeptFacts kept_facts(const core::Kept& kept);
// The JSON of a config map without its data.
std::string bare_json(const core::Kept& kept);

struct KeptView {
  core::KeptPtr kept;
  KeptFacts facts;
  uint64_t before = 0;  // its previous version, if known
};

}  // namespace muster::api
