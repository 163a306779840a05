// Kept: an object that clients store in muster: a Lease of coordination.k8s.io/v1 or an Event that
// a client wrote, which muster does not act on; a ConfigMap, whose values pods are given; a
// Namespace.
//
// Its version is the number of the commit that wrote it. It is durable, so a client with an older
// version still gets a conflict after a restart.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace muster::core {

// The journal stores these numbers.
enum class KeptKind : uint8_t { lease = 0, event = 1, config_map = 2, name_space = 3 };
constexpr KeptKind kKeptKinds[] = {KeptKind::lease, KeptKind::event, KeptKind::config_map,
                                   KeptKind::name_space};

// Limits on their number, and on the bytes of JSON of each. The oldest events make room for new
// ones, and events expire after an hour, as in Kubernetes; anything else beyond the limit is
// refused.
constexpr size_t kKeptLeasesMax = 1'000;
constexpr size_t kKeptEventsMax = 10'000;
constexpr size_t kKeptBytesMax = 32u << 10;  // of a lease, an event or a namespace
constexpr Millis kKeptEventMs = 3'600'000;
constexpr size_t kConfigMapsMax = 10'000;
constexpr size_t kConfigMapsBytesMax = 128u << 20;  // of all together
constexpr size_t kConfigMapBytesMax = 3u << 19;     // of one; its data are at most 1 MiB
constexpr size_t kNamespacesMax = 10'000;

struct Kept {
  KeptKind kind = KeptKind::lease;
  uint64_t id = 0;  // unique among stored objects
  std::string ns, name, uid;
  std::string json;                 // the object without its resourceVersion; events in v1 form
  Millis written_ms = 0;            // wall clock
  uint64_t version = 0;             // commit; 0: not written yet
  std::optional<uint32_t> owner{};  // uid of the user that it belongs to; nothing: of nobody
  bool operator==(const Kept&) const = default;
};
using KeptPtr = std::shared_ptr<const Kept>;

// How much one owner may store of a kind; 0: no limit.
struct KeptQuota {
  size_t count = 0;
  size_t bytes = 0;  // of JSON, of all together
};
// Of users; operators and admins have none.
constexpr KeptQuota kUserConfigMaps{1'000, 32u << 20};
constexpr KeptQuota kUserNamespaces{100, 1u << 20};

// What a commit did to one object.
struct KeptChange {
  KeptPtr now;  // the object as it is, or as it was before its removal
  bool removed = false;
};

}  // namespace muster::core
