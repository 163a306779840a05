#include "drill/proof/forecast.hpp"

#include "core/job/fold/text.hpp"
#include "core/job/rules/decide.hpp"
#include "core/spec/rules/defaults.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr NodeId kNode = 1;
constexpr uint64_t kRegistration = 1;
constexpr Millis kBegin = 1'767'225'600'000;
constexpr int32_t kKilled = 137;

// Runs the job in virtual time on one node with room for all of it, so only its rules delay it.
class Play {
 public:
  Play(const Canary& canary, const Disturbances& disturbances)
      : canary_(canary), disturbances_(disturbances) {
    Canary wide = canary;
    wide.parallelism = canary.indexes;
    auto object = std::make_shared<core::JobObject>();
    object->meta.name = "canary";
    object->meta.uid = "00000000-0000-4000-8000-000000000001";
    object->spec = canary_spec(wide);
    core::apply_defaults(object->meta, object->spec);
    job_ = std::make_unique<core::Job>(1, object);
    job_->apply(core::JobAdmitted{now_, object});
    knobs_.backoff_base_ms = kCanaryBackoffBase;
    knobs_.backoff_max_ms = kCanaryBackoffMax;
  }

  Forecast run() {
    // Each step ends an attempt or lets a backoff expire. Only disturbances cause attempts beyond
    // the retries.
    const size_t most = 10 * (canary_.indexes * (kCanaryRetries + 2) + disturbances_.size()) + 100;
    decide({core::TimePassed{}});
    for (size_t step = 0; step < most && !job_->finished(); ++step) {
      if (ends_.empty() && wakes_.empty()) break;
      now_ = std::min(ends_.empty() ? INT64_MAX : ends_.begin()->first,
                      wakes_.empty() ? INT64_MAX : *wakes_.begin());
      while (!wakes_.empty() && *wakes_.begin() <= now_) wakes_.erase(wakes_.begin());
      core::PodsReported report{.token = ++tokens_, .node = kNode};
      while (!ends_.empty() && ends_.begin()->first <= now_) {
        report.ends.push_back(end_of(ends_.begin()->second));
        ends_.erase(ends_.begin());
      }
      std::vector<core::Event> events;
      if (report.ends.empty())
        events.push_back(core::TimePassed{});
      else
        events.push_back(std::move(report));
      decide(std::move(events));
    }
    out_.succeeded = job_->state().completed;
    out_.failed = job_->state().failed_indexes;
    out_.failed_pods = job_->state().failed;
    if (job_->condition(core::ConditionType::complete)) out_.condition = "Complete";
    if (job_->condition(core::ConditionType::failed)) out_.condition = "Failed";
    return std::move(out_);
  }

 private:
  core::PodsReported::Ended end_of(PodKey pod) const {
    core::PodsReported::Ended end;
    end.pod = pod;
    const auto disturbed = disturbances_.find(pod);
    if (disturbed == disturbances_.end()) {
      end.exit_code = work_of(canary_, pod).code;
    } else if (disturbed->second == Disturbance::returned) {
      end.cause = core::EndCause::returned;
      return end;
    } else {
      end.cause = core::EndCause::keeper_lost;
      end.exit_code = kKilled;
    }
    end.start = {1, {}};
    return end;
  }

  void decide(std::vector<core::Event> events) {
    take(core::decide(*job_, events, now_, knobs_));
    while (!job_->pending().empty()) {
      const auto wanted = static_cast<uint32_t>(job_->pending().size());
      take(core::decide(*job_, {core::SlotsGranted{{{kNode, wanted}}, {{kNode, kRegistration}}}},
                        now_, knobs_));
    }
  }

  void take(const core::Decision& decision) {
    for (const core::Record& record : decision.records) {
      const auto* created = std::get_if<core::PodsCreated>(&record);
      if (created == nullptr) continue;
      for (const auto& run : created->runs)
        for (uint32_t i = run.first; i < run.first + run.count; ++i)
          if (const auto before = ended_.find(i); before != ended_.end())
            out_.attempts[{i, run.attempt}].delay_ms = now_ - before->second;
    }
    for (const core::Pod& pod : decision.closed) {
      Forecast::Attempt& attempt = out_.attempts[pod.key];
      attempt.counted = core::name(pod.counted);
      attempt.code = pod.end.exit_code;
    }
    for (const core::Effect& effect : decision.effects) {
      if (const auto* launch = std::get_if<core::LaunchPods>(&effect)) {
        for (const auto& one : launch->pods) {
          const Millis end = now_ + work_of(canary_, one.pod).span_ms;
          ends_.emplace(end, one.pod);
          ended_[one.pod.index] = end;
        }
      }
      if (const auto* wake = std::get_if<core::WakeAt>(&effect)) wakes_.insert(wake->at_ms);
    }
  }

  const Canary& canary_;
  const Disturbances& disturbances_;
  std::unique_ptr<core::Job> job_;
  core::Knobs knobs_;
  Millis now_ = kBegin;
  uint64_t tokens_ = 0;
  std::multimap<Millis, PodKey> ends_;
  std::set<Millis> wakes_;
  std::map<uint32_t, Millis> ended_;  // when the newest attempt of an index ends
  Forecast out_;
};

}  // namespace

Forecast forecast(const Canary& canary, const Disturbances& disturbances) {
  return Play(canary, disturbances).run();
}

}  // namespace muster::cli::drill
