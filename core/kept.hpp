// Kept: an object that clients store in muster and muster does not act on: a Lease of
// coordination.k8s.io/v1, or an Event that a client wrote.
//
// Its version is the number of the commit that wrote it. It is durable, so a client with an older
// version still gets a conflict after a restart.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace muster::core {

enum class KeptKind : uint8_t { lease = 0, event = 1 };

// Limits on their number, and on the bytes of JSON of each. The oldest events make room for new
// ones, and events expire after an hour, as in Kubernetes; a lease beyond the limit is refused.
constexpr size_t kKeptLeasesMax = 1'000;
constexpr size_t kKeptEventsMax = 10'000;
constexpr size_t kKeptBytesMax = 32u << 10;
constexpr Millis kKeptEventMs = 3'600'000;

struct Kept {
  KeptKind kind = KeptKind::lease;
  uint64_t id = 0;  // unique among stored objects
  std::string ns, name, uid;
  std::string json;       // the object without its resourceVersion; events in v1 form
  Millis written_ms = 0;  // wall clock
  uint64_t version = 0;   // commit; 0: not written yet
  bool operator==(const Kept&) const = default;
};
using KeptPtr = std::shared_ptr<const Kept>;

// What a commit did to one object.
struct KeptChange {
  KeptPtr now;  // the object as it is, or as it was before its removal
  bool removed = false;
};

}  // namespace muster::core
