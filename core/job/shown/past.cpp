#include "core/job/shown/past.hpp"

#include "core/job/rules/held.hpp"

#include <algorithm>
#include <utility>

namespace muster::core {
namespace {

constexpr size_t kInterval = sizeof(std::pair<uint32_t, uint32_t>);
constexpr size_t kPieceMin = 64;  // intervals that a piece may always grow by

// The parsed object has about the same size again.
size_t bytes_of(const JobObject& object) {
  return sizeof(JobObject) + 2 * object.json.size();
}

SteadyState steady_state(const JobState& s) {
  return {.generation = s.generation,
          .parallelism = s.parallelism,
          .completions = s.completions,
          .started_at = s.started_at,
          .completed_at = s.completed_at,
          .deleted_at = s.deleted_at,
          .background_deleted = s.background_deleted,
          .orphaned = s.orphaned,
          .deletion_waits = s.deletion_waits,
          .forgotten = s.forgotten,
          .synced = s.synced,
          .index_limits_off = s.index_limits_off,
          .conditions = s.conditions,
          .external_status = s.external_status,
          .own_conditions = s.own_conditions,
          .hold = s.hold,
          .overrides = s.overrides,
          .cancelled = s.cancelled};
}

}  // namespace

IndexSet IndexTrail::At::restore() const {
  IndexSet set;
  if (!piece_) return set;
  for (const auto& [first, last] : piece_->base) set.insert_range(first, last);
  for (size_t i = 0; i < grown_; ++i)
    set.insert_range(piece_->grown[i].first, piece_->grown[i].second);
  return set;
}

IndexTrail::At IndexTrail::take(const IndexSet& now, const IndexSet& grown, bool lost,
                                size_t& bytes) {
  const auto intervals_of = [](const IndexSet& set) { return set.intervals().size(); };
  At at;
  const bool begins = piece_ == nullptr && !now.empty();
  if (begins || (piece_ && (lost || piece_->grown.size() + intervals_of(grown) >
                                        std::max(piece_->base.size(), kPieceMin)))) {
    if (piece_) bytes += (piece_->base.size() + piece_->grown.size()) * kInterval;
    piece_ = std::make_shared<Piece>();
    piece_->base.assign(now.intervals().begin(), now.intervals().end());
  } else if (piece_) {
    piece_->grown.insert(piece_->grown.end(), grown.intervals().begin(), grown.intervals().end());
  }
  bytes += intervals_of(grown) * kInterval;
  at.piece_ = piece_;
  at.grown_ = piece_ ? piece_->grown.size() : 0;
  return at;
}

void JobTrail::note(const Touched& touched) {
  completed_grown_.insert_all(touched.completed);
  failed_grown_.insert_all(touched.failed_indexes);
  lost_ = lost_ || touched.indexes_lost;
}

JobPast JobTrail::take(const Job& job) {
  const JobState& s = job.state();
  JobPast past{.id = job.id(), .object = job.object_ptr(), .bytes = sizeof(JobPast)};
  if (object_ && (object_ != past.object || job.can_unload() || job.hidden()))
    past.bytes += bytes_of(*object_);
  object_ = past.object;
  if (SteadyState steady = steady_state(s); !steady_ || *steady_ != steady) {
    past.bytes += sizeof steady + steady.external_status.size() + steady.own_conditions.size() +
                  (steady.hold ? steady.hold->by.size() + steady.hold->reason.size() : 0);
    steady_ = std::make_shared<const SteadyState>(std::move(steady));
  }
  past.steady = steady_;
  past.completed = completed_.take(s.completed, completed_grown_, lost_, past.bytes);
  past.failed_indexes = failed_indexes_.take(s.failed_indexes, failed_grown_, lost_, past.bytes);
  // A copy without pods cannot tell which of them are so for good.
  IndexSet cancelled = cancelled_for_good(s), more = cancelled.without(cancelled_);
  const bool fewer = cancelled_.size() + more.size() != cancelled.size();
  past.cancelled_indexes = cancelled_indexes_.take(cancelled, more, fewer, past.bytes);
  cancelled_ = std::move(cancelled);
  completed_grown_ = failed_grown_ = IndexSet{};
  lost_ = false;
  past.succeeded = s.succeeded;
  past.failed = s.failed;
  past.pods = {job.active(), job.ready(), job.open_count(), job.pending_count(), job.held()};
  return past;
}

Job JobPast::restore() const {
  JobState s;
  s.generation = steady->generation;
  s.parallelism = steady->parallelism;
  s.completions = steady->completions;
  s.started_at = steady->started_at;
  s.completed_at = steady->completed_at;
  s.deleted_at = steady->deleted_at;
  s.background_deleted = steady->background_deleted;
  s.orphaned = steady->orphaned;
  s.deletion_waits = steady->deletion_waits;
  s.forgotten = steady->forgotten;
  s.synced = steady->synced;
  s.index_limits_off = steady->index_limits_off;
  s.conditions = steady->conditions;
  s.external_status = steady->external_status;
  s.own_conditions = steady->own_conditions;
  s.hold = steady->hold;
  s.overrides = steady->overrides;
  s.cancelled = steady->cancelled;
  s.completed = completed.restore();
  s.failed_indexes = failed_indexes.restore();
  s.cancelled_indexes = cancelled_indexes.restore();
  s.succeeded = succeeded;
  s.failed = failed;
  return Job(id, object, std::move(s), pods);
}

}  // namespace muster::core
