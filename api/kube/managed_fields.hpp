// ManagedFields: who speaks for which fields of an object, as metadata.managedFields says it.
//
// A manager is a name, an operation and a subresource. Apply: it says what it wants, whole, each
// time. Update: it has changed something once (create, replace, patch, scale). Whoever changes a
// field by an update takes it from all others; an apply that would do so is a conflict unless it is
// forced or wants the same value. Fields that the server fills in belong to nobody. Pure.
#pragma once

#include "api/kube/field_schema.hpp"
#include "api/kube/field_set.hpp"
#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// Who writes, and when.
struct Writer {
  std::string name;
  std::string api_version;  // of the object: "batch/v1"
  std::string now;          // time text
  std::string subresource;  // "scale", or empty
};

struct Manager {
  std::string name, api_version, time, subresource;
  bool applies = false;
  FieldSet fields;
};

// At most so many of each operation. Updates beyond are merged, the oldest first, into one manager
// named ancient-changes; an apply beyond is refused.
constexpr size_t kUpdateManagersMax = 10;
constexpr size_t kApplyManagersMax = 100;

// The managers in metadata.managedFields. A list that holds something else is nothing; so is one
// that is missing or empty.
std::optional<std::vector<Manager>> read_managers(const nlohmann::json& object);
// Sets metadata.managedFields, or removes it when there are none.
void write_managers(nlohmann::json& object, std::vector<Manager> managers);

// `after` with the managers that it has once `writer` made it out of `before` (an empty object: it
// is new). Who manages what is taken from `after` if it says so readably (clients may write it; a
// single empty entry forgets all managers), else from `before`.
void track_update(std::string_view type, const nlohmann::json& before, nlohmann::json& after,
                  const Writer& writer);

// What an apply of `wanted` makes of `live` (an empty object: it is created), with its managers. A
// conflict lists each field with its manager as a violation. A last-applied-configuration that
// kubectl left in `live` is taken over when kubectl itself applies.
Result<nlohmann::json> applied(std::string_view type, const nlohmann::json& live,
                               const nlohmann::json& wanted, const Writer& writer, bool force);

}  // namespace muster::api
