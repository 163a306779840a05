#include "core/node/devices.hpp"

#include <algorithm>

namespace muster::core::node {

Devices::Devices(const DeviceCounts& has) : has_(has) {}

bool Devices::has(const DeviceCounts& wanted) const {
  return std::all_of(wanted.begin(), wanted.end(), [this](const auto& one) {
    auto found = has_.find(one.first);
    return one.second == 0 || (found != has_.end() && found->second >= one.second);
  });
}

DeviceMapPtr Devices::take(const DeviceCounts& wanted) {
  auto taken = std::make_shared<DeviceMap>();
  for (const auto& [name, count] : wanted) {
    auto found = has_.find(name);
    uint32_t total = found == has_.end() ? 0 : found->second;
    const auto& held = held_[name];
    auto& numbers = (*taken)[name];
    for (uint32_t n = 0; n < total && numbers.size() < count; ++n) {
      if (!held.contains(n)) numbers.push_back(n);
    }
    if (numbers.size() < count) return nullptr;
  }
  adopt(*taken);
  return taken;
}

void Devices::adopt(const DeviceMap& held) {
  for (const auto& [name, numbers] : held) held_[name].insert(numbers.begin(), numbers.end());
}

void Devices::release(const DeviceMap& held) {
  for (const auto& [name, numbers] : held) {
    for (uint32_t n : numbers) held_[name].erase(n);
  }
}

}  // namespace muster::core::node
