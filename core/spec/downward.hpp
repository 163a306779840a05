// Downward: variables that tell a process about its pod and its node (valueFrom.fieldRef and
// resourceFieldRef).
//
// What the node itself knows (names, labels, uid) becomes a value there, in core/node/command.cpp.
// The rest rests on facts that only the coordinator has for sure, so it puts the values into the
// template that it sends to the node: no agent, keeper or permit has to know of them.
#pragma once

#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::core {

// What values can depend on, of the node that gets the template.
struct NodeFigures {
  std::string ip;  // empty: unknown, and so are the values
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
};

// Puts in the values of a copy of one of the pod's containers. A pod has its node's network, so the
// node's address is the pod's; a limit that is not set is what the node has.
void put_values(Container& container, const PodTemplate& pod, const NodeFigures& node);

// `at`: the path of the variable's valueFrom.
void validate_field_path(const std::string& at, const std::string& field_path, Violations& found);
void validate_resource_ref(const std::string& at, const ResourceRef& ref, const PodTemplate& pod,
                           Violations& found);

}  // namespace muster::core
