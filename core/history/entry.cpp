#include "core/history/entry.hpp"

#include "base/printable.hpp"
#include "base/process/shell_words.hpp"
#include "core/job/shown/array_tasks.hpp"
#include "core/queue/queue.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/inputs.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace muster::core {
namespace {

struct StateName {
  PastState state;
  std::string_view name;
};
constexpr StateName kStateNames[] = {
    {PastState::pending, "Pending"},     {PastState::held, "Held"},
    {PastState::suspended, "Suspended"}, {PastState::running, "Running"},
    {PastState::complete, "Complete"},   {PastState::failed, "Failed"},
    {PastState::cancelled, "Cancelled"}, {PastState::deleted, "Deleted"},
};

bool same_letters(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// The beginning of a text, cut between characters of UTF-8.
std::string beginning(std::string_view text) {
  constexpr std::string_view kMore = "…";
  if (text.size() <= kHistoryTextMax) return std::string(text);
  return utf8_prefix(text, kHistoryTextMax - kMore.size()).append(kMore);
}

std::string command_words(const JobSpec& spec) {
  std::string text;
  if (spec.pod.containers.empty()) return text;
  const Container& first = spec.pod.containers.front();
  for (const auto* words : {&first.command, &first.args})
    for (const std::string& word : *words) {
      if (text.size() > kHistoryTextMax) break;
      // No more than is kept, but more than would fit.
      text += (text.empty() ? "" : " ") + typed_word(word.substr(0, 2 * kHistoryTextMax));
    }
  return beginning(text);
}

// As ranges. Those of a long array are kept as such with the job; others are read as they are.
std::string kept_tasks(const JobObject& job) {
  constexpr size_t kReadMax = 16 << 10;  // bytes
  const auto inputs = job.meta.annotations.find(std::string(kInputsKey));
  if (inputs == job.meta.annotations.end()) return "";
  std::string text = inputs->second;
  if (!ranges_in(text)) {
    if (text.size() > kReadMax) return "";
    const std::vector<uint32_t> tasks = array_tasks(job);
    const bool ascend = std::ranges::adjacent_find(tasks, std::greater_equal<>()) == tasks.end();
    if (tasks.empty() || !ascend) return "";
    text = ranges_of(tasks);
  }
  const std::string ranges(*ranges_in(text));
  return ranges.size() <= kHistoryTasksMax ? ranges : "";
}

uint64_t indexes_of(const Job& job) {
  if (const auto needed = job.needed()) return static_cast<uint64_t>(std::max<int64_t>(0, *needed));
  return 1;  // a single success
}

PastState state_of(const Job& job, const Condition* end) {
  const JobState& s = job.state();
  if (end != nullptr) {
    if (end->type == ConditionType::complete) return PastState::complete;
    return end->reason == ConditionReason::cancelled ? PastState::cancelled : PastState::failed;
  }
  if (s.deleted_at) return PastState::deleted;
  if (job.suspended()) return PastState::suspended;
  const bool ran = s.usage.first_start || s.usage.ran_ms > 0;
  if (ran || job.ready() > 0) return PastState::running;
  return s.hold ? PastState::held : PastState::pending;
}

// The TTL deletes a job no earlier than it expires; what an owner deletes later had not been
// removed in time, which happens only while the coordinator is down.
Removal removal_of(const Job& job, const Condition* end) {
  const auto& deleted_at = job.state().deleted_at;
  if (!deleted_at) return Removal::none;
  const auto& ttl_s = job.spec().ttl_s;
  const bool expired = end != nullptr && ttl_s && end->at_ms + *ttl_s * 1000LL <= *deleted_at;
  return expired ? Removal::expired : Removal::deleted;
}

}  // namespace

std::string_view name(PastState state) {
  return std::ranges::find(kStateNames, state, &StateName::state)->name;
}

std::string_view name(Removal removal) {
  switch (removal) {
    case Removal::none:
      break;
    case Removal::deleted:
      return "Deleted";
    case Removal::expired:
      return "Expired";
  }
  return "";
}

std::optional<PastState> past_state(std::string_view name) {
  for (const auto& [state, text] : kStateNames)
    if (same_letters(text, name)) return state;
  return std::nullopt;
}

int64_t HistoryEntry::cpu_held_ms() const {
  constexpr int64_t kOneCpu = 1000;
  const int64_t millis = requested.cpu_millis > 0 ? requested.cpu_millis : kOneCpu;
  // As floating point: the product of a large job may not fit.
  constexpr double kHeldMax = 9e18;
  return static_cast<int64_t>(
      std::min(kHeldMax, static_cast<double>(ran_ms) * static_cast<double>(millis) / kOneCpu));
}

HistoryEntry history_entry(const Job& job) {
  const JobState& s = job.state();
  const JobMeta& meta = job.object().meta;
  const Condition* const end = job.terminal();
  HistoryEntry entry{.id = job.id(), .ns = meta.ns, .name = meta.name, .uid = meta.uid};
  if (const auto owner = owner_of(meta.annotations)) {
    entry.owner = owner->uid;
    entry.group = owner->gid;
    entry.user = owner->name;
  }
  const Demand demand = demand_of(*placed_object(job));
  entry.queue = s.usage.queue.empty() ? demand.queue : s.usage.queue;
  entry.command = command_words(job.spec());
  entry.state = state_of(job, end);
  if (end != nullptr) {
    entry.reason = name(end->reason);
    entry.message = beginning(end->message);
  }
  entry.removal = removal_of(job, end);
  entry.created_ms = s.admitted_ms;
  entry.started = s.usage.first_start;
  entry.waited_ms = s.usage.waited_ms;
  if (end != nullptr)
    entry.ended = end->at_ms;
  else if (s.deleted_at)
    entry.ended = s.last_record_ms;
  entry.removed = s.deleted_at;
  entry.indexed = job.indexed();
  entry.tasks = kept_tasks(job.object());
  entry.indexes = indexes_of(job);
  entry.succeeded = job.succeeded();
  entry.failed_indexes = job.failures_of_indexes();
  entry.cancelled_indexes = s.cancelled_indexes.size();
  entry.attempts = s.usage.attempts;
  entry.failed_attempts = s.failed;
  entry.used = s.usage.used;
  entry.ran_ms = s.usage.ran_ms;
  entry.requested = demand.amounts;
  return entry;
}

}  // namespace muster::core
