// Progress: how far along jobs are, for a user who is watching. The texts are pure functions of job
// status; status_line.hpp displays them.
#pragma once

#include "base/clock.hpp"
#include "client/news/pace.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/status_line.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::cli {

// Progress of a Job object, or the sum of several.
struct Standing {
  std::optional<int64_t> completions;  // a NonIndexed job may have none
  int64_t succeeded = 0;               // pods; indexes if Indexed
  int64_t failed = 0;                  // pods
  int64_t running = 0;                 // started but not ended
  int64_t active = 0;                  // running, or waiting for a slot
  int64_t terminating = 0;
  // Indexes, or tasks of an array.
  struct Some {
    int64_t count = 0;
    std::string set;  // always empty in a sum
    bool operator==(const Some&) const = default;
  };
  Some lost;           // those that have failed
  Some cancelled;      // none of them is in `lost`
  bool tasks = false;  // the sets are of tasks
  bool suspended = false;
  bool led = false;  // an MPI job: its leader decides, the others never succeed
  int64_t jobs = 1, jobs_over = 0;
  bool operator==(const Standing&) const = default;

  const char* noun() const { return tasks ? " tasks " : " indexes "; }
  int64_t settled() const { return succeeded + lost.count + cancelled.count; }
  void add(const Standing& other);
};

Standing standing_of(const Json& job);

// "3/4 running  00:07" for an MPI job; for others
// "12/20  running 4  failed indexes 3 (7,9-10)  cancelled indexes 1 (8)  2.1/s  about 00:04 left
// 00:07", after a progress bar of `bar` columns (0: none). `left_ms`: time until everything is
// settled, if known.
std::string progress_text(const Standing& standing, double per_second,
                          std::optional<Millis> left_ms, Millis elapsed_ms, size_t bar);

// An index set in at most `width` characters: whole intervals, then "...".
std::string cut_set(const std::string& indexes, size_t width);

class Progress {
 public:
  Progress(Millis now, When color) : line_(now, color) {}
  void show(const Standing& standing, Millis now);
  // Erases the updating line, so that something else can be printed.
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  Pace pace_;
};

}  // namespace muster::cli
