// Patches: the three ways in which a client can describe a change to an object. Pure.
//
//   merge      RFC 7386: members replace, null removes, lists are replaced whole
//   JSON patch RFC 6902: a list of operations, all or nothing
//   strategic  Kubernetes' own: like merge, but lists with a merge key (containers by name,
//              conditions by type, …) merge element by element, and $-directives remove things.
//              A list is recognized by the name of its field, wherever it is (merged_lists())
//
// Each takes at most O(n log n) time in the size of the two texts, thanks to the bounds in
// json_patch.hpp.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

namespace muster::api {

// apply: server-side apply, which also needs the object's managers (managed_fields.hpp).
enum class PatchType { merge, json, strategic, apply };

// Applies any patch but PatchType::apply to `base`. Returns `invalid` with a message that says what
// is wrong, and with a violation if the patch exceeds a bound.
Result<nlohmann::json> apply_patch(PatchType type, nlohmann::json base,
                                   const nlohmann::json& patch);

}  // namespace muster::api
