// Devices: who holds which of a node's named resources (nvidia.com/gpu 0 to 3).
//
// Always holds: no device number is held by two pods.
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
  // Numbers count from 0.
  explicit Devices(const DeviceCounts& has);

  // Whether that many are here at all, taken or not.
  bool has(const DeviceCounts& wanted) const;
  // The lowest free numbers; null: not enough are free now.
  DeviceMapPtr take(const DeviceCounts& wanted);
  // What a pod holds already, by an earlier agent. Numbers that this node no longer has stay with
  // it, too.
  void adopt(const DeviceMap& held);
  void release(const DeviceMap& held);

 private:
  DeviceCounts has_;
  std::map<std::string, std::set<uint32_t>> held_;
};

}  // namespace muster::core::node
