#include "core/node/devices.hpp"

#include <algorithm>

namespace muster::core::node {

Devices::Devices(const DeviceCounts& has, const DeviceMap& numbers) : has_(numbers) {
  for (const auto& [name, count] : has)
    if (auto [own, fresh] = has_.try_emplace(name); fresh)
      for (uint32_t n = 0; n < count; ++n) own->second.push_back(n);
}

bool Devices::has(const DeviceCounts& wanted) const {
  return std::all_of(wanted.begin(), wanted.end(), [this](const auto& one) {
    auto found = has_.find(one.first);
    return one.second == 0 || (found != has_.end() && found->second.size() >= one.second);
  });
}

DeviceMapPtr Devices::take(const DeviceCounts& wanted) {
  auto taken = std::make_shared<DeviceMap>();
  for (const auto& [name, count] : wanted) {
    const auto found = has_.find(name);
    const auto& held = held_[name];
    auto& numbers = (*taken)[name];
    if (found != has_.end())
      for (const uint32_t n : found->second)
        if (numbers.size() < count && !held.contains(n)) numbers.push_back(n);
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
