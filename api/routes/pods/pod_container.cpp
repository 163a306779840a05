#include "api/routes/pods/pod_container.hpp"

#include <algorithm>
#include <vector>

namespace muster::api {
namespace {

std::string in_brackets(const std::vector<core::Container>& containers) {
  std::string names;
  for (const core::Container& one : containers) names += (names.empty() ? "" : " ") + one.name;
  return "[" + names + "]";
}

bool has_container(const std::vector<core::Container>& containers, const std::string& name) {
  return std::ranges::any_of(containers,
                             [&name](const core::Container& one) { return one.name == name; });
}

}  // namespace

Result<std::string> chosen_container(const core::PodTemplate& spec, const std::string& wanted,
                                     const std::string& pod) {
  if (!wanted.empty() && !has_container(spec.containers, wanted) &&
      !has_container(spec.init_containers, wanted))
    return Error{Errc::invalid, "container " + wanted + " is not valid for pod " + pod, {}};
  if (!wanted.empty()) return wanted;
  if (spec.containers.size() == 1) return spec.containers.front().name;
  return Error{Errc::invalid,
               "a container name must be specified for pod " + pod +
                   ", choose one of: " + in_brackets(spec.containers) +
                   (spec.init_containers.empty()
                        ? ""
                        : " or one of the init containers: " + in_brackets(spec.init_containers)),
               {}};
}

}  // namespace muster::api
