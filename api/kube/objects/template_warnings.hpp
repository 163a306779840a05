// Template warnings: what is doubtful in a pod template, in the words of Kubernetes
// (pkg/api/pod/warnings.go): names and ports given twice, fractions of bytes, labels and
// annotations that are deprecated.
#pragma once

#include "base/text/json.hpp"

#include <string>
#include <vector>

namespace muster::api {

// `job`: a document whose template is canonical (canonical.hpp).
std::vector<std::string> template_warnings(const Json& job);

}  // namespace muster::api
