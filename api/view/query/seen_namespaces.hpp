// Which namespaces exist for a viewer: `default`, those in which it may see a job or a config map,
// and those that it may see as objects. For operators, all that are in use.
//
// A namespace in which a user sees nothing must look like a name that nobody uses, so every answer
// that depends on whether a namespace is in use asks here.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/model/viewer.hpp"

#include <set>
#include <string>

namespace muster::api {

std::set<std::string> seen_namespaces(const View& view, const Viewer& viewer);
bool sees_namespace(const View& view, const Viewer& viewer, const std::string& name);

}  // namespace muster::api
