// Transcript: drives a job by lines of text and prints what it answers. For tests.
//
//   submit completions=2 parallelism=1 [mode=NonIndexed backoffLimit= backoffLimitPerIndex=
//          maxFailedIndexes= podReplacementPolicy= gang= mpi= restart= retry-memory= retry-time=
//          base=1s max=8s]
//   granted n1=2 n2=1 [memory=1 time=1]   slots, for pods with these steps
//   start n1 0#0 [1#0 …]       a report of starts; the pid is 100 + the pod's index
//   end n1 0#0 exit=1 [signal=9 cause=killed age=2s unstarted], 1#0 exit=0 …   a report of ends
//   report n1 0#0 exit=0       the same, start and end in one
//   nodelost n1 [deleted]    registered n1 known=0#0,1#0    ready n1
//   tick +10s                  time passes, and the job is woken
//   delete [foreground]
//   hold alice [operator=1 reason=full]   release alice [operator=1]   priority 100 olga
//   cancel alice [1,3-5]
//   restart                    replaces the job by the fold of its records; both must be equal
//   status                     its figures
//   & COMMAND                  deferred: reaches the job together with the next command
//
// Answers begin with "> ". Time begins at kBegin and advances only by `tick`.
#pragma once

#include "core/job/rules/decide.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

class Transcript {
 public:
  static constexpr JobId kJob = 1;
  static constexpr Millis kBegin = 1'767'225'600'000;  // 2026-01-01T00:00:00Z

  // The answers to a line, without "> ". A malformed line is answered "error …".
  std::vector<std::string> play(std::string_view line);

  Job& job() { return *job_; }

 private:
  std::vector<std::string> submit(const std::vector<std::string>& words);
  std::vector<std::string> restart();
  std::vector<std::string> decided(std::vector<Event> events);

  std::unique_ptr<Job> job_;
  std::vector<Record> records_;
  std::vector<Event> waiting_;
  Knobs knobs_;
  Millis now_ = kBegin;
  uint64_t tokens_ = 0;
};

}  // namespace muster::core
