// WaitingPods: how many pods of each owner wait for a place, over all jobs, so that the jobs of one
// owner together do not create more of them than a coordinator has memory for. Any thread.
//
// When the owner's other jobs use up the maximum, a job may still have a few pods waiting. It
// creates more as these are placed, so it need not be told when pods of the other jobs are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace muster::actors {

class WaitingPods {
 public:
  static constexpr uint64_t kOwnerMax = 100'000;
  static constexpr uint32_t kJobMin = 100;

  explicit WaitingPods(uint64_t owner_max = kOwnerMax, uint32_t job_min = kJobMin)
      : owner_max_(owner_max), job_min_(job_min) {}

  // Those of one job. The WaitingPods must outlive it.
  class OfJob {
   public:
    // `owner`: a uid; unset: the job has none. All jobs without an owner share one maximum.
    OfJob(WaitingPods& all, std::optional<uint32_t> owner) : all_(all), count_(all.of(owner)) {}
    ~OfJob() { now(0); }
    OfJob(const OfJob&) = delete;
    OfJob& operator=(const OfJob&) = delete;

    void now(uint64_t waiting) {
      count_->fetch_add(waiting - std::exchange(waiting_, waiting), std::memory_order_relaxed);
    }
    // How many may wait, of `most` that it would have alone.
    uint32_t may(uint32_t most) const {
      const uint64_t others = count_->load(std::memory_order_relaxed) - waiting_;
      const uint64_t left = all_.owner_max_ - std::min(others, all_.owner_max_);
      return static_cast<uint32_t>(std::clamp<uint64_t>(left, std::min(all_.job_min_, most), most));
    }

   private:
    WaitingPods& all_;
    const std::shared_ptr<std::atomic<uint64_t>> count_;
    uint64_t waiting_ = 0;
  };

 private:
  using Count = std::atomic<uint64_t>;

  std::shared_ptr<Count> of(std::optional<uint32_t> owner) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Count>& count = counts_[owner];
    if (!count) count = std::make_shared<Count>(0);
    return count;
  }

  const uint64_t owner_max_;
  const uint32_t job_min_;
  std::mutex mutex_;
  std::map<std::optional<uint32_t>, std::shared_ptr<Count>> counts_;  // one per owner ever seen
};

}  // namespace muster::actors
