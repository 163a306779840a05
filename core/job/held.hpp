// What a held job waits for (muster.dev/after), in words.
#pragma once

#include "core/job/job.hpp"

#include <string>

namespace muster::core {

// "job prep to succeed, clean to end", as in "waits for …". Empty: it does not wait.
std::string awaited_text(const Job& job);

}  // namespace muster::core
