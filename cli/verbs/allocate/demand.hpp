// Demand: what pods without a node require, and how many nodes of one shape they would fill. Pure.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli::allocate {

// What a node offers, as its Node object says.
struct Shape {
  uint64_t slots = 0;
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  std::map<std::string, int64_t> named;  // nvidia.com/gpu
  std::map<std::string, std::string> labels;
};

// Waiting pods of one job, all alike.
struct Demand {
  std::string job;  // NAMESPACE/NAME
  std::string queue;
  std::string waits_for;  // as /apis/muster.dev/v1/demand says it
  uint64_t pods = 0;
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  std::map<std::string, int64_t> named;
  std::map<std::string, std::string> node_selector;
  bool of_one_node = false;             // names its node
  std::optional<int64_t> time_limit_s;  // of a pod
  bool gang = false;
};

// Whether more nodes would help: the pods wait for slots, and neither for a limit nor for a person.
bool wants_nodes(const Demand& demand);

// How many of these pods such a node takes, when it is empty; 0: none. `time_ms`: how long nodes
// live. Taints are not looked at.
uint64_t pods_on(const Demand& demand, const Shape& shape, Millis time_ms);

// What the pods that want nodes come to.
struct Need {
  uint64_t pods = 0;   // that a node takes
  uint64_t nodes = 0;  // that they fill
  bool gang = false;   // some of them start together
};
// `shape` unknown: all pods fit, and one node is enough.
Need need_of(const std::vector<Demand>& all, const std::optional<Shape>& shape, Millis time_ms);

}  // namespace muster::cli::allocate
