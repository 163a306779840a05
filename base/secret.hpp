// Secret: random text that nobody can guess, and how two of them are compared.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

inline constexpr size_t kSecretBytes = 32;

// So many bytes of the kernel's randomness, in hex.
std::string random_hex(size_t bytes);

// Takes as long whatever they have in common. An empty one is no secret and matches nothing.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace muster
