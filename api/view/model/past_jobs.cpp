#include "api/view/model/past_jobs.hpp"

namespace muster::api {
namespace {

constexpr size_t kBytesMax = 4u << 20;

size_t bytes_of(const core::Job& job) {
  constexpr size_t kJob = 4096, kInterval = 160;  // an interval is in three sets
  const core::JobState& s = job.state();
  return kJob + kInterval * (s.completed.intervals().size() + s.failed_indexes.intervals().size() +
                             s.cancelled_indexes.intervals().size());
}

}  // namespace

std::shared_ptr<const core::Job> PastJobs::restored(const std::shared_ptr<const PastJob>& past) {
  const auto found = jobs_.find(past.get());
  if (found != jobs_.end()) return found->second.job;
  auto job = std::make_shared<const core::Job>(past->job.restore());
  const size_t more = bytes_of(*job);
  jobs_[past.get()] = {past, job, more};
  order_.push_back(past.get());
  weight_ += more;
  while (weight_ > kBytesMax && order_.size() > 1) {
    const auto oldest = jobs_.find(order_.front());
    weight_ -= oldest->second.weight;
    jobs_.erase(oldest);
    order_.pop_front();
  }
  return job;
}

}  // namespace muster::api
