// KeptView: a kept object in the View, with what lists select by.
#pragma once

#include "core/kept.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace muster::api {

struct KeptFacts {
  core::StringMap labels;
  std::map<std::string, std::string, std::less<>> fields;  // for example "involvedObject.name"
};
KeptFacts kept_facts(const core::Kept& kept);

struct KeptView {
  core::KeptPtr kept;
  KeptFacts facts;
  uint64_t before = 0;  // its previous version, if known
};

}  // namespace muster::api
