// The version: the build reads it from here, and `muster version` and /version report it.
#pragma once

namespace muster {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace muster
