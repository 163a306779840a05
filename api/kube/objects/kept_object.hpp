// KeptObject: converts leases, config maps, namespaces, and the events that clients write, between
// their JSON and core::Kept. CronJobs have rules of their own (cron_object.hpp), and so have queues
// and priority classes (queue_object.hpp).
//
// For leases and events, muster uses only the name and the fields that selectors match; the rest is
// only checked. A namespace's status and finalizers are written only through their subresources.
// Events are stored in v1 form and converted to and from events.k8s.io/v1.
#pragma once

#include "api/kube/objects/cron_object.hpp"
#include "api/kube/objects/kept_view.hpp"
#include "api/kube/objects/manifest.hpp"
#include "base/result.hpp"
#include "base/text/json.hpp"
#include "core/kept.hpp"
#include "core/spec/fields/owner.hpp"

#include <optional>
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

// What a request specifies besides the object.
struct KeptRequest {
  core::KeptKind kind = core::KeptKind::lease;
  EventWords words = EventWords::core_v1;
  std::string ns, name;  // from the path; a POST has no name
  FieldValidation unknown_fields = FieldValidation::strict;
  std::optional<core::Owner> owner{};   // of a new config map or namespace
  bool may_share = true;                // whether the caller may set kSharedKey
  std::string sub{};                    // "status", "finalize", or none
  std::optional<TemplateRules> cron{};  // of a CronJob
};

// The ApiType of this kind as it is stored, by which managers have its fields.
const char* managed_type(core::KeptKind kind);
// Whether objects of this kind belong to the user who created them.
bool has_owner(core::KeptKind kind);

// What the server sets on a new object.
struct NewKept {
  std::string uid, name_suffix;
  Millis now_ms = 0;
};

// `invalid` with violations if the object is invalid, without if it cannot be read or does not
// match the path.
Result<WrittenKept> new_kept(JsonText text, const KeptRequest& request, const NewKept& given);
// Replaces `old`, keeping its uid and creation time. `conflict` if the uid is another object's.
Result<WrittenKept> changed_kept(JsonText text, const KeptRequest& request, const core::Kept& old);

// An error if it is too long to be stored, managed fields included.
std::optional<Error> kept_too_long(const core::Kept& kept);

// A namespace that exists because it is in use, as if it had been created with this uid (may be
// empty) at this time (0: unknown).
core::Kept namespace_in_use(const std::string& name, const std::string& uid = "",
                            Millis now_ms = 0);
// Marks a namespace as being deleted. `by`: only this user's objects are deleted with it; nothing:
// everyone's.
core::KeptPtr terminated(const core::Kept& name_space, Millis now_ms, std::optional<uint32_t> by);
// Marks an object that is not a namespace as being deleted, once its dependents are gone.
core::KeptPtr deleted_in_foreground(const core::Kept& kept, Millis now_ms);
// The namespace without our finalizer: nothing is left in it.
core::KeptPtr finalized(const core::Kept& name_space);
// The user whose objects are deleted with the namespace; nothing: everyone's.
std::optional<uint32_t> terminated_by(const core::Kept& name_space);

// The config map in each namespace that gives Kubernetes clients the CA of the API's certificate;
// empty without TLS.
constexpr std::string_view kRootCaName = "kube-root-ca.crt";
core::Kept root_ca(const std::string& ns, const std::string& pem, Millis now_ms);

}  // namespace muster::api
