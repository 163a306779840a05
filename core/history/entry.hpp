// HistoryEntry: what the history keeps of a job, whether or not the job still exists.
//
// Derived from the job whenever it is needed. Once the job has ended, and for the last time with
// the removal of the job, it is written beside the job's own rows (storage/rows/history.hpp), so
// each job has one entry, whatever crashes. It has sums, no attempts: its size does not grow with
// the job.
#pragma once

#include "core/cluster/nodes/demand.hpp"
#include "core/job/fold/job.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

enum class PastState : uint8_t {
  pending,    // no process of it has started
  held,       // likewise, and someone holds it
  suspended,  // by its owner
  running,    // some process of it has started
  complete,
  failed,
  cancelled,  // by muster cancel
  deleted,    // before it had ended
};
// How the job itself was removed; its entry stays.
enum class Removal : uint8_t { none, deleted, expired };

// "Pending", "Running", …; "Deleted", "Expired", and "" for none.
std::string_view name(PastState state);
std::string_view name(Removal removal);
// Of any spelling in letters of either case; nothing for any other text.
std::optional<PastState> past_state(std::string_view name);

constexpr size_t kHistoryTextMax = 200;   // bytes of a command or a message that are kept
constexpr size_t kHistoryTasksMax = 500;  // bytes of a set of tasks

struct HistoryEntry {
  JobId id = 0;
  std::string ns, name, uid;
  std::optional<uint32_t> owner{};  // uid; absent: the coordinator served one user
  uint32_t group = 0;               // the owner's primary one
  std::string user{};               // the owner's name
  std::string queue{};              // in which it is, or ran last
  std::string command{};            // of its first container; may be cut
  PastState state = PastState::pending;
  std::string reason{}, message{};  // of its end; the message may be cut
  Removal removal = Removal::none;
  Millis created_ms = 0;
  std::optional<Millis> started{};  // its first process
  Millis waited_ms = 0;             // free to run, until then
  std::optional<Millis> ended{};    // its last pod, if it was deleted before it had ended
  std::optional<Millis> removed{};  // when its deletion was requested
  bool indexed = false;
  // Of an array, the numbers of its indexes, as ranges (core/spec/values/inputs.hpp). Empty: it is
  // none, or has so many ranges that they are not kept.
  std::string tasks{};
  // Of a NonIndexed job, the pods that must succeed. Indexes fail only with a limit per index.
  uint64_t indexes = 0, succeeded = 0, failed_indexes = 0, cancelled_indexes = 0;
  // Of the pods that were on a node and have ended. What those use that still run is not known yet.
  uint64_t attempts = 0, failed_attempts = 0;
  Usage used{};
  Millis ran_ms = 0;
  Amounts requested{};  // by each pod

  bool over() const { return ended.has_value(); }
  // CPU time that its attempts held, in milliseconds: their run times multiplied by the CPUs that a
  // pod requests. One that requests none holds a slot, which counts as one CPU.
  int64_t cpu_held_ms() const;
  bool operator==(const HistoryEntry&) const = default;
};

HistoryEntry history_entry(const Job& job);

}  // namespace muster::core
