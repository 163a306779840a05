// The version of this executable.
#pragma once

namespace muster::cli {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace muster::cli
