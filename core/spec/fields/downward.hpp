// Downward: variables that tell a process about its pod and its node (valueFrom.fieldRef and
// resourceFieldRef).
//
// Values that the node knows (names, labels, uid) are filled in there, by core/node/command.cpp.
// The others depend on facts that only the coordinator knows for certain, so it puts the values
// into the template that it sends to the node: agents, keepers and permits need not know about
// them.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::core {

// Facts about the node that gets the template, on which values depend.
struct NodeFigures {
  std::string ip;  // empty: unknown; the values are then empty too
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
};

// Fills in the values in a copy of one of the pod's containers. A pod uses its node's network, so
// the node's address is the pod's address; a limit that is not set is what the node has.
void put_values(Container& container, const PodTemplate& pod, const NodeFigures& node);

// `at`: the path of the variable's valueFrom.
void validate_field_path(const std::string& at, const std::string& field_path, Violations& found);
void validate_resource_ref(const std::string& at, const ResourceRef& ref, const PodTemplate& pod,
                           Violations& found);

}  // namespace muster::core
