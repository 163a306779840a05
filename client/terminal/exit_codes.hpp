// Exit codes of muster, and how every verb reports an error.
//
// An error is one line on stderr: what failed, why, and what would be right. A manifest that breaks
// rules gets a line for each violation.
#pragma once

#include "base/result.hpp"

#include <string>

namespace muster::cli {

enum Exit : int {
  kDone = 0,      // success; run and wait: the job is Complete
  kFailed = 1,    // the job Failed; verify: not sound
  kUsage = 2,     // wrong flags or arguments
  kNotFound = 3,  // no such object
  kUnproven = 3,  // drill: INCONCLUSIVE
  // No coordinator, it cannot answer now, or something else did; or descriptors or threads ran out.
  kUnreachable = 4,
  kRejected = 5,   // invalid, conflict, immutable field, unreadable manifest
  kTimeout = 124,  // --timeout expired
  kInterrupted = 130,
};

// Prints "muster: MESSAGE" and returns the code.
int fail(int code, const std::string& message);

// The same for an Error, with its violations below it. `what` (a file, an object) precedes the
// message unless empty. An Error without a message consists of its violations: each is printed like
// a message, with its place as its path (client/documents/manifests.hpp).
int fail(const Error& error, const std::string& what = "");

std::string error_text(const Error& error, const std::string& what = "");

// The same for a daemon, whose stderr is a log: does not wait for its reader, except for a moment
// at the exit.
int fail_daemon(const Error& error, const std::string& what);

Exit exit_code(Errc code);

}  // namespace muster::cli
