#include "api/routes/pods/pod_container.hpp"

#include <vector>

namespace muster::api {
namespace {

std::string in_brackets(const std::vector<core::Container>& containers) {
  std::string names;
  for (const core::Container& one : containers) names += (names.empty() ? "" : " ") + one.name;
  return "[" + names + "]";
}

}  // namespace

Result<ChosenContainer> chosen_container(const core::PodTemplate& spec, const std::string& wanted,
                                         const std::string& pod) {
  if (!wanted.empty()) {
    size_t position = 0;
    for (const auto* list : {&spec.init_containers, &spec.containers})
      for (const core::Container& one : *list) {
        if (one.name == wanted) return ChosenContainer{wanted, position};
        ++position;
      }
    return Error{Errc::invalid, "container " + wanted + " is not valid for pod " + pod, {}};
  }
  if (spec.containers.size() == 1)
    return ChosenContainer{spec.containers.front().name, spec.init_containers.size()};
  return Error{Errc::invalid,
               "a container name must be specified for pod " + pod +
                   ", choose one of: " + in_brackets(spec.containers) +
                   (spec.init_containers.empty()
                        ? ""
                        : " or one of the init containers: " + in_brackets(spec.init_containers)),
               {}};
}

}  // namespace muster::api
