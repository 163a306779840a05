// JSON patch: RFC 6902, all or nothing.
//
// A few operations could make a huge object by copying what others copied, or take for ever by
// moving what stands in a long list. So their number, the bytes that they copy and the elements
// that they shift are bounded; Kubernetes bounds the first two at these values. Pure.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>

namespace muster::api {

constexpr size_t kPatchOperationsMax = 10'000;
constexpr size_t kPatchCopyMax = 3u << 20;    // bytes, as they lie in memory
constexpr size_t kPatchShiftMax = 2'000'000;  // elements pushed aside by what comes or goes

// `invalid` with a message that names what is wrong; with a violation too if a bound is exceeded.
Result<nlohmann::json> apply_operations(nlohmann::json base, const nlohmann::json& patch);

}  // namespace muster::api
