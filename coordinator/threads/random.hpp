// Random numbers from the kernel, for ids that must be unguessable and unique.
#pragma once

#include <cstdint>

namespace muster::coordinator {

uint64_t random_number();

}  // namespace muster::coordinator
