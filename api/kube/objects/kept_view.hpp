// KeptView: a kept object in the View, with the values that selectors match.
#pragma once

#include "base/clock.hpp"
#include "core/kept.hpp"
#include "core/spec/fields/config_maps.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/fields/owner_ref.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

struct KeptFacts {
  core::StringMap labels;
  std::vector<core::OwnerRef> owners;  // metadata.ownerReferences
  bool shared = false;                 // of a config map: everyone may read it (kSharedKey)
  core::ConfigKeys keys;               // of a config map
  bool terminating = false;            // it is being deleted
  // Of a namespace: spec.finalizers. Of others: those of their metadata, while being deleted.
  std::vector<std::string> finalizers;
  std::optional<Millis> created_ms;                        // of a config map or namespace
  std::map<std::string, std::string, std::less<>> fields;  // for example "involvedObject.name"
};
constexpr std::string_view kNamespaceFinalizer = "kubernetes";  // ours
// An annotation on config maps that only operators and admins may set.
constexpr std::string_view kSharedKey = "muster.dev/shared";
KeptFacts kept_facts(const core::Kept& kept);

struct KeptView {
  core::KeptPtr kept;
  KeptFacts facts;
  uint64_t version = 0;  // as clients see it (api/view/model/shown.hpp)
};

}  // namespace muster::api
