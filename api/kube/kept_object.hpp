// KeptObject: converts leases, and the events that clients write, between their JSON and
// core::Kept.
//
// Muster uses only the name of such an object and the fields that lists select by; the rest is only
// checked. Events are stored as v1 has them and converted to and from events.k8s.io/v1.
#pragma once

#include "api/kube/kept_view.hpp"
#include "api/kube/manifest.hpp"
#include "base/result.hpp"
#include "core/kept.hpp"
#include "text/json.hpp"

#include <string>
#include <vector>

namespace muster::api {

// The API version whose field names an event uses.
enum class EventWords { core_v1, events_v1 };

// The JSON that clients see.
OrderedJson kept_json(const core::Kept& kept, uint64_t version,
                      EventWords words = EventWords::core_v1);
// Renames the fields of an event from v1 to events.k8s.io/v1, and back.
OrderedJson in_events_words(OrderedJson event);
Json in_core_words(Json event);

// A written object that has passed all checks.
struct WrittenKept {
  core::Kept kept;  // without id, version and the time of writing
  std::string resource_version;
  std::vector<std::string> warnings;
};

// What a request says in addition to the object.
struct KeptRequest {
  core::KeptKind kind = core::KeptKind::lease;
  EventWords words = EventWords::core_v1;
  std::string ns, name;  // from the path; no name: a POST
  FieldValidation unknown_fields = FieldValidation::strict;
};

// What the server sets on a new object.
struct NewKept {
  std::string uid, name_suffix;
  Millis now_ms = 0;
};

// `invalid` with violations: the object is invalid; without: it cannot be read, or does not match
// the path.
Result<WrittenKept> new_kept(JsonText text, const KeptRequest& request, const NewKept& given);
// Replaces `old`, keeping its uid and creation time. conflict: the uid is another object's.
Result<WrittenKept> changed_kept(JsonText text, const KeptRequest& request, const core::Kept& old);

}  // namespace muster::api
