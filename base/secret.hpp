// Secret: unguessable random text, and its comparison in constant time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

inline constexpr size_t kSecretBytes = 32;

// `bytes` random bytes from the kernel, in hex.
std::string random_hex(size_t bytes);

// The time taken does not depend on where the secrets differ. An empty secret matches nothing.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace muster
