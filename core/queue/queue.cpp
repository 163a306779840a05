#include "core/queue/queue.hpp"

#include <algorithm>

namespace muster::core {

std::string queue_of(const StringMap& annotations) {
  const auto found = annotations.find(std::string(kQueueKey));
  return found == annotations.end() || found->second.empty() ? std::string(kDefaultQueue)
                                                             : found->second;
}

bool open_to(const Queue& queue, const std::optional<Owner>& owner) {
  if (!owner || owner->privileged || (queue.users.empty() && queue.groups.empty())) return true;
  const auto in_queue = [&queue](uint32_t gid) {
    return std::find(queue.groups.begin(), queue.groups.end(), gid) != queue.groups.end();
  };
  return std::find(queue.users.begin(), queue.users.end(), owner->name) != queue.users.end() ||
         in_queue(owner->gid) || std::any_of(owner->groups.begin(), owner->groups.end(), in_queue);
}

}  // namespace muster::core
