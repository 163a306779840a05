// JSON patch: RFC 6902, all or nothing.
//
// A few operations could make a huge object by copying copies, or take very long by shifting
// elements of a long list. So the number of operations, the bytes that they copy and the elements
// that they shift are bounded; Kubernetes has the same bounds for the first two. Pure.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>

namespace muster::api {

constexpr size_t kPatchOperationsMax = 10'000;
constexpr size_t kPatchCopyMax = 3u << 20;    // bytes in memory
constexpr size_t kPatchShiftMax = 2'000'000;  // elements shifted by insertions and removals

// `invalid` if the patch cannot be applied, with a violation if it exceeds a bound.
Result<nlohmann::json> apply_operations(nlohmann::json base, const nlohmann::json& patch);

}  // namespace muster::api
