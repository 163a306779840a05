// KeptView: an object that is kept for clients, as the View has it, with what lists select by.
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
  std::map<std::string, std::string, std::less<>> fields;  // "involvedObject.name" -> its value
};
KeptFacts kept_facts(const core::Kept& kept);

struct KeptView {
  core::KeptPtr kept;
  KeptFacts facts;
  uint64_t before = 0;  // its version before the present one, as far as that is known
};

}  // namespace muster::api
