// Patches: the three ways a client says what to change of an object. Pure.
//
//   merge      RFC 7386: members replace, null removes, lists are replaced whole
//   JSON patch RFC 6902: a list of operations, all or nothing
//   strategic  Kubernetes': as merge, but lists with a merge key (containers by name, conditions by
//              type, …) are merged element by element, and $-directives say what to remove. A list
//              is known by the name of its field, wherever it stands (merged_lists())
//
// None takes more time than n log n of what the two texts hold; json_patch.hpp has the bounds that
// this needs.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

namespace muster::api {

// apply: server-side apply, which needs the object's managers too (managed_fields.hpp).
enum class PatchType { merge, json, strategic, apply };

// `base` with the patch applied, which is no apply. `invalid` with a message that names what is
// wrong; with a violation too if the patch is beyond a bound.
Result<nlohmann::json> apply_patch(PatchType type, nlohmann::json base,
                                   const nlohmann::json& patch);

}  // namespace muster::api
