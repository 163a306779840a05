// QueueObject: converts Queues (muster.dev/v1) and PriorityClasses (scheduling.k8s.io/v1) between
// their JSON and the values of core/queue.
//
// A queue names groups, and pods' owners have group numbers: who converts a queue says which
// numbers the names have on this machine.
#pragma once

#include "base/text/json.hpp"
#include "core/queue/priority_class.hpp"
#include "core/queue/queue.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// Complete and check a conforming object. `old`: the one that it replaces.
void settle_queue(Json& queue, core::Violations& found);
void settle_priority_class(Json& priority_class, const Json* old, core::Violations& found);

// The gids of groups by name; absent: there is no such group.
using GroupIds = std::map<std::string, std::optional<uint32_t>>;

// Of stored JSON.
core::Queue queue_of(const Json& queue, const GroupIds& groups);
core::PriorityClass priority_class_of(const Json& priority_class);
// The names of the queue's groups, without those that are numbers.
std::vector<std::string> group_names_of(const Json& queue);

}  // namespace muster::api
