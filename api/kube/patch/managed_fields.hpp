// ManagedFields: who manages which fields of an object, as recorded in metadata.managedFields.
//
// A manager is a name, an operation and a subresource. An Apply states all the fields that it
// wants, every time; an Update changed something once (create, replace, patch, scale). An update
// takes the fields it changes from all other managers; an apply that would do so is a conflict,
// unless it is forced or sets the same value. Fields that the server fills in have no manager.
// Pure.
#pragma once

#include "api/kube/schema/field_schema.hpp"
#include "api/kube/schema/field_set.hpp"
#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// The writer of a change, and when it writes.
struct Writer {
  std::string name;
  std::string api_version;  // of the object: "batch/v1"
  std::string now;          // as time_text() prints it
  std::string subresource;  // "scale", or empty
};

struct Manager {
  std::string name, api_version, time, subresource;
  bool applies = false;
  FieldSet fields;
};

// Bounds for each operation. Excess updates are merged, oldest first, into one manager named
// ancient-changes; an excess apply is refused.
constexpr size_t kUpdateManagersMax = 10;
constexpr size_t kApplyManagersMax = 100;

// The managers in metadata.managedFields; nothing if it is missing, empty or invalid.
std::optional<std::vector<Manager>> read_managers(const nlohmann::json& object);
// Sets metadata.managedFields, or removes it if there are no managers.
void write_managers(nlohmann::json& object, std::vector<Manager> managers);

// Sets the managers of `after`, which `writer` made from `before` (empty if the object is new). The
// previous managers come from `after` if it has a valid list (clients may write it; a single empty
// entry resets it), otherwise from `before`.
void track_update(std::string_view type, const nlohmann::json& before, nlohmann::json& after,
                  const Writer& writer);

// Applies `wanted` to `live` (empty if the object is created) and sets the managers. A conflict
// lists each field and its manager as a violation. When kubectl applies, it takes over the fields
// of the last-applied-configuration that it left in `live`.
Result<nlohmann::json> applied(std::string_view type, const nlohmann::json& live,
                               const nlohmann::json& wanted, const Writer& writer, bool force);

}  // namespace muster::api
