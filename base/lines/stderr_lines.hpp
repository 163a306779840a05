// What this process says on stderr.
//
// Commands write at once, and wait for their reader. A process that serves calls queue_stderr(),
// which puts a LineQueue before stderr, so none of its threads ever waits for a reader. The queue
// is drained when the process exits, when a MUSTER_CHECK fails, and when it crashes
// (base/last_words.hpp). A forked child has no queue, since it lacks the queue's thread.
#pragma once

#include "base/lines/line_queue.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// From now on, lines are queued. Without a further thread or descriptor, nothing changes.
void queue_stderr(LineQueue::Notice notice);

// `line`: with its newline.
void say(std::string line);

// Waits for queued lines, but at most LineQueue::kDrainMax. Async-signal-safe.
void drain_stderr() noexcept;

// For a thread that ends the process: waits for queued lines, then writes this one past the queue,
// unless the reader leaves no room for it for LineQueue::kDrainMax. Allocates nothing.
void say_last(std::string_view line) noexcept;

uint64_t dropped_stderr_lines();

// "3 lines were dropped: nobody reads the log", for notices.
std::string dropped_text(uint64_t dropped);

}  // namespace muster
