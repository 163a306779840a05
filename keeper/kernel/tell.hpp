// The keeper's log: lines on stderr, which its agent points at keeper.log, and a unit at the
// journal.
//
// The keeper's threads serve, so none waits for a reader (base/lines/stderr_lines.hpp); lines that
// nobody takes are dropped and counted. Not for a child between fork and exec.
#pragma once

namespace muster::keeper {

// From now on, lines are queued; starts a thread.
void queue_told();

// A line, without its newline; "muster-keeper: " precedes it.
[[gnu::format(printf, 1, 2)]] void tell(const char* format, ...);

// The same, like perror().
void tell_errno(const char* what);

}  // namespace muster::keeper
