// What a held job waits for (muster.dev/after), as text.
#pragma once

#include "core/job/fold/job.hpp"

#include <string>

namespace muster::core {

// "job prep to succeed, clean to end", to follow "waits for". Empty: it does not wait.
std::string awaited_text(const Job& job);

}  // namespace muster::core
