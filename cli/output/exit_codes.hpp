// Exit codes of muster, and the one way in which a verb says what went wrong.
//
// Errors are for a person: one line on stderr that says what was wrong, where, and what would be
// right; of a manifest that breaks rules, each on a line of its own below it.
#pragma once

#include "base/result.hpp"

#include <string>

namespace muster::cli {

enum Exit : int {
  kDone = 0,         // for run and wait: the job is Complete
  kFailed = 1,       // the job Failed
  kUsage = 2,        // wrong flags or arguments
  kNotFound = 3,     // no such object
  kUnreachable = 4,  // no coordinator there, or it cannot answer now
  kRejected = 5,     // invalid, conflict, immutable, an unreadable manifest
  kTimeout = 124,    // --timeout passed
  kInterrupted = 130,
};

// Prints "muster: MESSAGE" and returns the code.
int fail(int code, const std::string& message);

// The same for a refusal, its violations below it; `what` (a file, a verb's object) leads the
// message when it is not empty.
int fail(const Error& error, const std::string& what = "");

Exit exit_code(Errc code);

}  // namespace muster::cli
