// Kept: an object that clients store in muster: a Lease (coordination.k8s.io/v1) or an Event, which
// muster does not act on; a ConfigMap, whose values are passed to pods; a Namespace; a CronJob; a
// Queue or a PriorityClass, which jobs name.
//
// An object's version is the number of the commit that wrote it. The version is durable, so a
// client with an older one still gets a conflict after a restart.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace muster::core {

// The journal stores these numbers.
enum class KeptKind : uint8_t {
  lease = 0,
  event = 1,
  config_map = 2,
  name_space = 3,
  cron_job = 4,
  queue = 5,
  priority_class = 6
};
constexpr KeptKind kKeptKinds[] = {
    KeptKind::lease,    KeptKind::event, KeptKind::config_map,    KeptKind::name_space,
    KeptKind::cron_job, KeptKind::queue, KeptKind::priority_class};
// Whether objects of this kind are in no namespace.
constexpr bool is_cluster_wide(KeptKind kind) {
  return kind == KeptKind::name_space || kind == KeptKind::queue ||
         kind == KeptKind::priority_class;
}

// Limits on the number of objects and on the JSON size of each. The oldest events make room for new
// ones, and events expire after an hour, as in Kubernetes; other objects beyond a limit are
// refused.
constexpr size_t kKeptLeasesMax = 1'000;
constexpr size_t kKeptEventsMax = 10'000;
constexpr size_t kKeptBytesMax = 32u << 10;  // for each, unless a limit below says otherwise
constexpr Millis kKeptEventMs = 3'600'000;
constexpr size_t kConfigMapsMax = 10'000;
constexpr size_t kConfigMapsBytesMax = 128u << 20;  // all together
constexpr size_t kConfigMapBytesMax = 3u << 19;     // each; its data are at most 1 MiB
constexpr size_t kNamespacesMax = 10'000;
constexpr size_t kCronJobsMax = 10'000;
constexpr size_t kCronJobsBytesMax = 128u << 20;  // all together
constexpr size_t kCronJobBytesMax = 1u << 20;     // each
constexpr size_t kQueuesMax = 1'000;
constexpr size_t kPriorityClassesMax = 1'000;

struct Kept {
  KeptKind kind = KeptKind::lease;
  uint64_t id = 0;  // unique among stored objects
  std::string ns, name, uid;
  std::string json;                 // the object without its resourceVersion; events in v1 form
  Millis written_ms = 0;            // wall clock
  uint64_t version = 0;             // commit; 0: not written yet
  std::optional<uint32_t> owner{};  // uid of the user that it belongs to, if any
  bool operator==(const Kept&) const = default;
};
using KeptPtr = std::shared_ptr<const Kept>;

// How much of one kind an owner may store; 0: no limit.
struct KeptQuota {
  size_t count = 0;
  size_t bytes = 0;  // total JSON size
};
// Quotas of users; operators and admins have none.
constexpr KeptQuota kUserConfigMaps{1'000, 32u << 20};
constexpr KeptQuota kUserNamespaces{100, 1u << 20};
constexpr KeptQuota kUserCronJobs{100, 8u << 20};

// What a commit did to one object.
struct KeptChange {
  KeptPtr now;  // the object after the commit, or as it was before its removal
  bool removed = false;
};

}  // namespace muster::core
