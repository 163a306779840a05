// Which container of a pod a request for its log or for a command means, in Kubernetes' words,
// which kubectl shows. Pure.
#pragma once

#include "base/result.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <string>

namespace muster::api {

struct ChosenContainer {
  std::string name;
  size_t position = 0;  // in PodEnd::containers
};
// `wanted`: as given; empty: the pod's only one. `pod`: the pod's name. invalid: there is none, or
// there are several to choose from.
Result<ChosenContainer> chosen_container(const core::PodTemplate& spec, const std::string& wanted,
                                         const std::string& pod);

}  // namespace muster::api
