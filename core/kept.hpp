// Kept: an object that clients keep here and muster does not act on: a Lease of
// coordination.k8s.io/v1, an Event that a client has written.
//
// Its version is the number of the commit that wrote it, on disk too, so that a client that holds
// an older one is told so after a restart as well.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace muster::core {

enum class KeptKind : uint8_t { lease = 0, event = 1 };

// At most so many, and so many bytes of JSON each. Of events the oldest make room, and after an
// hour they go, as Kubernetes' do; a lease beyond is refused.
constexpr size_t kKeptLeasesMax = 1'000;
constexpr size_t kKeptEventsMax = 10'000;
constexpr size_t kKeptBytesMax = 32u << 10;
constexpr Millis kKeptEventMs = 3'600'000;

struct Kept {
  KeptKind kind = KeptKind::lease;
  uint64_t id = 0;  // unlike that of any other that is there
  std::string ns, name, uid;
  std::string json;       // the object without its resourceVersion; events as v1 has them
  Millis written_ms = 0;  // wall clock
  uint64_t version = 0;   // commit; 0: not written yet
  bool operator==(const Kept&) const = default;
};
using KeptPtr = std::shared_ptr<const Kept>;

// What a commit did to one.
struct KeptChange {
  KeptPtr now;  // as it is, or as it was
  bool removed = false;
};

}  // namespace muster::core
