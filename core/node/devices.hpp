// Devices: which of a node's named resources (nvidia.com/gpu 0 to 3) are held by pods.
//
// Invariant: no two pods hold the same device number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace muster::core::node {

using DeviceCounts = std::map<std::string, uint32_t>;            // by resource name
using DeviceMap = std::map<std::string, std::vector<uint32_t>>;  // numbers, ascending
using DeviceMapPtr = std::shared_ptr<const DeviceMap>;

class Devices {
 public:
  Devices() = default;
  // They count from 0, except for resources in `numbers`.
  explicit Devices(const DeviceCounts& has, const DeviceMap& numbers = {});

  // Whether the node has that many in total, taken or not.
  bool has(const DeviceCounts& wanted) const;
  // Takes the lowest free numbers; null: not enough are free now.
  DeviceMapPtr take(const DeviceCounts& wanted);
  // Takes over devices that an earlier agent gave to a pod, including numbers that this node no
  // longer has.
  void adopt(const DeviceMap& held);
  void release(const DeviceMap& held);

 private:
  DeviceMap has_;
  std::map<std::string, std::set<uint32_t>> held_;
};

}  // namespace muster::core::node
