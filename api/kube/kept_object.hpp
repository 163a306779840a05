// KeptObject: leases, and the events that clients write, between their JSON and what is kept.
//
// Muster looks at such an object for its name and for what lists select by; the rest is only
// checked. Events are kept as v1 has them, and events.k8s.io/v1 is another way to say the same.
#pragma once

#include "api/kube/kept_view.hpp"
#include "api/kube/manifest.hpp"
#include "base/result.hpp"
#include "core/kept.hpp"
#include "text/json.hpp"

#include <string>
#include <vector>

namespace muster::api {

// In whose words an event is said.
enum class EventWords { core_v1, events_v1 };

// As clients see it.
OrderedJson kept_json(const core::Kept& kept, uint64_t version,
                      EventWords words = EventWords::core_v1);
// An event of v1 in the words of events.k8s.io/v1, and back.
OrderedJson in_events_words(OrderedJson event);
Json in_core_words(Json event);

// A written object, judged.
struct WrittenKept {
  core::Kept kept;  // without id, version and the instant it is written
  std::string resource_version;
  std::vector<std::string> warnings;
};

// What a request says beside the object.
struct KeptRequest {
  core::KeptKind kind = core::KeptKind::lease;
  EventWords words = EventWords::core_v1;
  std::string ns, name;  // of the path; no name: a POST
  FieldValidation unknown_fields = FieldValidation::strict;
};

// What the server gives to a new one.
struct NewKept {
  std::string uid, name_suffix;
  Millis now_ms = 0;
};

// `invalid` with violations: it breaks rules; without: it can't be read, or is not what the path
// says. conflict: the uid is another one's.
Result<WrittenKept> new_kept(JsonText text, const KeptRequest& request, const NewKept& given);
// In the place of `old`, whose uid and creation it keeps.
Result<WrittenKept> changed_kept(JsonText text, const KeptRequest& request, const core::Kept& old);

}  // namespace muster::api
