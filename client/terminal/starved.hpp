// What to say, and how to end, when the system refuses muster a thread, a descriptor or memory.
//
// Libraries throw then, from any thread and out of constructors, so there is nothing to unwind to:
// the process ends with one line that says what ran out and what to raise. Its exit code is
// kUnreachable, as for everything else that may work later.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace muster::cli {

// "Too many open files: raise the limit …", if a system call that failed with `error` lacks
// something; else what strerror() says.
std::string want_text(int error);

// What ran out, if this exception says that something did.
std::optional<std::string> want_of(const std::exception_ptr& exception);

// From now on, memory that runs out and exceptions that nobody catches end the process with a line
// on stderr: with kUnreachable if something ran out, unless the thread was working on a job
// (base/last_words.hpp), else with SIGABRT.
void report_uncaught();

// Fails if fewer than `needed` descriptors can be opened.
Status want_descriptors(uint64_t needed);

// What a coordinator without jobs and clients takes, plus an agent and its connections.
constexpr uint64_t kDescriptorsToServe = 64;

}  // namespace muster::cli
