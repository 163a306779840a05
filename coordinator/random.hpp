// Random numbers of the kernel, good enough for ids that nobody may guess or meet twice.
#pragma once

#include <cstdint>

namespace muster::coordinator {

uint64_t random_number();

}  // namespace muster::coordinator
