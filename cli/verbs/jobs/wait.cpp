// muster wait: waits until jobs reach a condition, or no longer can.
//
// Polls rather than watches: polling survives a restart of the coordinator, and a job is small.
// Each job is reported once its outcome is known; the worst outcome determines the exit code.
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/follow.hpp"
#include "client/follow/signals.hpp"
#include "client/news/progress.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

namespace muster::cli {
namespace {

constexpr Millis kWaitFirst = 20, kWaitMax = 500;  // between two polls

class Waiter {
 public:
  Waiter(const WaitOptions& options, ApiClient& client)
      : options_(options),
        client_(client),
        begin_(boot_now()),
        progress_(begin_, options.target.color) {
    for (const std::string& job : options.jobs)
      jobs_.push_back({job, SameObject(object_path(Kind::job, options.target.ns, job),
                                       options.jobs.size() == 1 ? options.known : KnownObject())});
  }

  int run() {
    Signals signals;
    Millis pause = kWaitFirst;
    for (;;) {
      if (const int code = look(); code >= 0) return code;
      if (std::all_of(jobs_.begin(), jobs_.end(), [](const Job& j) { return j.code >= 0; }))
        return worst();
      const Millis left = begin_ + options_.timeout_ms.value_or(kWaitMax) - boot_now();
      if (options_.timeout_ms && left <= 0) return timed_out();
      show();
      if (signals.next(options_.timeout_ms ? std::min(pause, left) : pause) != 0)
        return interrupted();
      pause = std::min(pause * 3 / 2, kWaitMax);
    }
  }

 private:
  struct Job {
    std::string name;
    SameObject same;
    Standing standing{};
    bool seen = false;
    int code = -1;  // -1: undecided
    std::string title() const { return "job.batch/" + name; }
  };

  // Polls each undecided job. Returns an exit code on an error, else -1.
  int look() {
    for (Job& job : jobs_) {
      if (job.code >= 0) continue;
      auto now = job.same.get(client_);
      if (now) {
        answered_ = boot_now();
        job.seen = true;
        job.standing = standing_of(*now);
        job.code = judge(job, *now);
      } else if (now.error().code == Errc::not_found) {
        job.code = gone(job, now.error());
      } else if (now.error().code != Errc::unavailable || !answered_ ||
                 boot_now() - *answered_ > kAbsenceMax) {
        progress_.clear();
        return fail(now.error());
      }
    }
    return -1;
  }

  int gone(const Job& job, const Error& error) {
    progress_.clear();
    if (options_.deleted) return done(job, "deleted");
    return fail(kNotFound, job.seen ? job.title() + " was deleted" : error.message);
  }

  std::string wanted() const {
    if (options_.deleted) return "deleted";
    if (options_.condition.empty()) return "finished";
    return (options_.condition_value ? "" : "not ") + options_.condition;
  }

  int done(const Job& job, const std::string& what) {
    progress_.clear();
    std::cout << job.title() << " " << what << std::endl;
    return kDone;
  }

  // The exit code for this job; -1: undecided.
  int judge(const Job& job, const Json& now) {
    if (options_.deleted) return -1;
    const JobEnd end = end_of(now);
    if (options_.condition.empty()) {
      if (end == JobEnd::complete) return done(job, "Complete");
      return end == JobEnd::failed ? failed(job, now) : -1;
    }
    const bool met = !condition_of(now, options_.condition).is_null();
    if (met == options_.condition_value) return done(job, "condition met");
    if (end == JobEnd::failed) return failed(job, now);
    if (end == JobEnd::none) return -1;
    progress_.clear();
    return fail(kFailed, job.title() + " is Complete and will not become " + wanted());
  }

  int failed(const Job& job, const Json& now) {
    progress_.clear();
    const Json& condition = condition_of(now, "Failed");
    const std::string& ns = options_.target.ns;
    const std::string details = failure_details(client_, ns, now, [&](const Failures& failures) {
      return more_text(failures, job.name, ns);
    });
    const int code = fail(kFailed, job.title() + " Failed: " + text_at(condition, {"reason"}) +
                                       ": " + text_at(condition, {"message"}));
    std::cerr << details;
    return code;
  }

  void show() {
    Standing all = jobs_.front().standing;
    for (size_t i = 1; i < jobs_.size(); ++i) all.add(jobs_[i].standing);
    progress_.show(all, boot_now());
  }

  // Names of the undecided jobs, for a message.
  std::string open() const {
    std::string names;
    for (const Job& job : jobs_) {
      if (job.code < 0) names += (names.empty() ? "" : ", ") + job.title();
    }
    return names;
  }

  const char* not_stopped() const {
    return jobs_.size() == 1 ? "; the job was not stopped" : "; the jobs were not stopped";
  }

  int timed_out() {
    progress_.clear();
    return fail(kTimeout, open() + ": not " + wanted() + " after " +
                              core::duration_text(*options_.timeout_ms) + not_stopped());
  }

  int interrupted() {
    progress_.clear();
    return fail(kInterrupted, "interrupted while waiting for " + open() + not_stopped());
  }

  // Not found (3) outranks failed (1), which outranks done (0).
  int worst() const {
    int code = kDone;
    for (const Job& job : jobs_) code = std::max(code, job.code);
    return code;
  }

  const WaitOptions& options_;
  ApiClient& client_;
  const Millis begin_;
  std::optional<Millis> answered_;  // when the coordinator last answered
  Progress progress_;
  std::vector<Job> jobs_;
};

}  // namespace

int execute(const WaitOptions& options) {
  const auto client = connect(options.target);
  if (options.timeout_ms)
    client->set_timeout(
        std::clamp<Millis>(*options.timeout_ms, 1, options.target.request_timeout_ms));
  return Waiter(options, *client).run();
}

}  // namespace muster::cli
