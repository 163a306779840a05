// The version of this build, as the build reads it here and as `muster version` and /version tell
// it.
#pragma once

namespace muster {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace muster
