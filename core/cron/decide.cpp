#include "core/cron/decide.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace muster::core {
namespace {

constexpr int kManyMissed = 100;

bool contains(const std::vector<JobRef>& jobs, const std::string& uid) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const JobRef& job) { return job.uid == uid; });
}

void drop(std::vector<JobRef>& jobs, const std::string& uid) {
  std::erase_if(jobs, [&](const JobRef& job) { return job.uid == uid; });
}

// As Go's time.RFC1123Z, in UTC: "Mon, 02 Jan 2006 15:04:05 +0000".
std::string mail_time(Millis at_ms) {
  const time_t seconds = at_ms / 1000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S +0000", &parts);
  return text;
}

class Round {
 public:
  Round(const CronJob& cron, std::vector<ChildJob> children, const Zone* zone, Millis now_ms)
      : cron_(cron), spec_(cron.spec), children_(std::move(children)), zone_(zone), now_(now_ms) {
    out_.status = cron.status;
  }

  CronDecision decide() {
    look_at_schedule();
    forget_old();
    note_children();
    forget_missing();
    if (due_) start(*due_);
    return std::move(out_);
  }

 private:
  void event(bool warning, const char* reason, std::string message) {
    out_.events.push_back({warning, reason, std::move(message)});
  }

  void remove(const JobRef& job) {
    out_.remove.push_back(job);
    drop(out_.status.active, job.uid);
  }

  // Deletes the finished jobs beyond the history limits, oldest first.
  void forget_old() {
    remove_beyond(ChildJob::End::complete, spec_.keep_successful);
    remove_beyond(ChildJob::End::failed, spec_.keep_failed);
  }

  void remove_beyond(ChildJob::End end, std::optional<int32_t> keep) {
    if (!keep) return;
    std::vector<const ChildJob*> ended;
    for (const ChildJob& child : children_)
      if (child.end == end) ended.push_back(&child);
    std::sort(ended.begin(), ended.end(), [](const ChildJob* a, const ChildJob* b) {
      if (a->started_ms.has_value() != b->started_ms.has_value()) return a->started_ms.has_value();
      if (a->started_ms != b->started_ms) return *a->started_ms < *b->started_ms;
      return a->ref.name < b->ref.name;
    });
    const size_t most = static_cast<size_t>(std::max(0, *keep));
    for (size_t i = 0; i + most < ended.size(); ++i) remove(ended[i]->ref);
  }

  void note_children() {
    for (const ChildJob& child : children_) {
      const bool listed = contains(out_.status.active, child.ref.uid);
      if (child.end == ChildJob::End::none) {
        if (!listed && !is_due(child))
          event(true, "UnexpectedJob",
                "Saw a job that the controller did not create or forgot: " + child.ref.name);
        continue;
      }
      const bool complete = child.end == ChildJob::End::complete;
      if (listed) {
        drop(out_.status.active, child.ref.uid);
        event(false, "SawCompletedJob",
              "Saw completed job: " + child.ref.name +
                  ", condition: " + (complete ? "Complete" : "Failed"));
      }
      if (complete && child.ended_ms > out_.status.successful_ms.value_or(0))
        out_.status.successful_ms = child.ended_ms;
    }
  }

  // Jobs that were deleted by somebody else are no longer active.
  void forget_missing() {
    const std::vector<JobRef> listed = out_.status.active;
    for (const JobRef& job : listed) {
      if (std::any_of(children_.begin(), children_.end(),
                      [&](const ChildJob& child) { return child.ref.uid == job.uid; }))
        continue;
      event(false, "MissingJob", "Active job went missing: " + job.name);
      drop(out_.status.active, job.uid);
    }
  }

  void look_at_schedule() {
    if (cron_.deleted) return;
    if (zone_ == nullptr)
      return event(true, "UnknownTimeZone",
                   "invalid timeZone: \"" + spec_.time_zone.value_or("") +
                       "\": unknown time zone " + spec_.time_zone.value_or(""));
    if (spec_.suspend) return;
    const auto schedule = Schedule::parse(spec_.schedule);
    if (!schedule.ok())
      return event(
          true, "UnparseableSchedule",
          "unparseable schedule: \"" + spec_.schedule + "\" : " + schedule.error().message);
    const Millis since = cron_.status.scheduled_ms.value_or(cron_.created_ms);
    const auto last = schedule->last(since, now_, *zone_);
    // An interval is counted from the last start.
    out_.wake = schedule->next(last.value_or(since), *zone_);
    if (!last) return;
    if (*last <= earliest(since))
      return event(true, "MissSchedule",
                   "Missed scheduled time to start a job: " + mail_time(*last));
    if (many_missed(*schedule, earliest(since)))
      event(true, "TooManyMissedTimes",
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
            "clock skew");
    due_ = last;
  }

  bool is_due(const ChildJob& child) const {
    return due_ && child.ref.name == job_name(cron_.name, *due_);
  }

  // Nothing before the deadline is made up for.
  Millis earliest(Millis since) const {
    if (!spec_.starting_deadline_s) return since;
    const Millis span = std::min<Millis>(*spec_.starting_deadline_s, now_ / 1000) * 1000;
    return std::max(since, now_ - span);
  }

  bool many_missed(const Schedule& schedule, Millis since) const {
    int missed = 0;
    for (auto at = schedule.next(since, *zone_); at && *at <= now_ && missed <= kManyMissed;
         at = schedule.next(*at, *zone_))
      ++missed;
    return missed > kManyMissed;
  }

  void start(Millis due) {
    if (const auto made = std::find_if(children_.begin(), children_.end(),
                                       [this](const ChildJob& child) { return is_due(child); });
        made != children_.end()) {  // by a coordinator that could not write the status
      out_.status.scheduled_ms = due;
      if (made->end == ChildJob::End::none) out_.status = started(out_.status, made->ref, due);
      return;
    }
    auto& active = out_.status.active;
    if (spec_.concurrency == Concurrency::forbid && !active.empty())
      return event(false, "JobAlreadyActive",
                   "Not starting job because prior execution is running and concurrency policy is "
                   "Forbid");
    if (spec_.concurrency == Concurrency::replace)
      for (const JobRef& job : std::vector<JobRef>(active)) remove(job);
    out_.start = due;
  }

  const CronJob& cron_;
  const CronSpec& spec_;
  const std::vector<ChildJob> children_;
  const Zone* const zone_;
  const Millis now_;
  std::optional<Millis> due_;
  CronDecision out_;
};

}  // namespace

CronDecision decide(const CronJob& cron, std::vector<ChildJob> children, const Zone* zone,
                    Millis now_ms) {
  return Round(cron, std::move(children), zone, now_ms).decide();
}

CronStatus started(CronStatus status, JobRef job, Millis scheduled_ms) {
  if (!contains(status.active, job.uid)) status.active.push_back(std::move(job));
  status.scheduled_ms = scheduled_ms;
  return status;
}

std::string job_name(const std::string& cron, Millis scheduled_ms) {
  return cron + "-" + std::to_string(scheduled_ms / 60'000);
}

}  // namespace muster::core
