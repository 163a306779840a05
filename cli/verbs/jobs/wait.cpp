// muster wait: waits until jobs reach a condition, or no longer can.
//
// Polls rather than watches: polling survives a restart of the coordinator, and a job is small.
// Each job is reported once its outcome is known; the worst outcome determines the exit code.
#include "cli/verbs/jobs/wait.hpp"

#include "base/printable.hpp"
#include "base/text/nearest.hpp"
#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/follow.hpp"
#include "client/follow/signals.hpp"
#include "client/news/attempts.hpp"
#include "client/news/progress.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/local_time.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string_view>
#include <strings.h>

namespace muster::cli {
namespace {

constexpr Millis kWaitFirst = 20, kWaitMax = 500;  // between two polls
constexpr Millis kWhyMax = 2'000;                  // for what is said once the time is up

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
    if (job.seen) return fail(kNotFound, job.title() + " was deleted");
    return fail(
        with_near_miss(client_, options_.target.ns, Kind::job, job.name, error, Parts::none));
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
    const std::string message = text_at(condition, {"message"});  // only its owner's to see
    const int code = fail(kFailed, job.title() + " Failed: " + text_at(condition, {"reason"}) +
                                       (message.empty() ? "" : ": " + message));
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
    const int code = fail(kTimeout, open() + ": not " + wanted() + " after " +
                                        core::duration_text(*options_.timeout_ms) + not_stopped());
    for (const Job& job : jobs_)
      if (job.code < 0) explain(job);
    return code;
  }

  // What keeps the job from finishing, as `muster why` says it. No answer: nothing is said.
  void explain(const Job& job) {
    client_.set_timeout(kWhyMax);
    const auto why = object(client_, own_path(options_.target.ns, job.name, "why"));
    if (!why) return;
    std::cerr << "  job/" << job.name << " " << text_at(*why, {"state"}) << ": "
              << on_one_line(localized(text_at(*why, {"summary"}))) << "\n";
    for (const Json& line : at(*why, {"details"}))
      std::cerr << "    " << on_one_line(localized(line.get<std::string>())) << "\n";
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

// Reads "condition=Complete", "delete" and the like into `o`.
std::optional<Usage> read_until(const std::string& text, WaitOptions& o) {
  constexpr std::string_view kCondition = "condition=";
  if (text.empty()) return std::nullopt;
  if (text == "delete") {
    o.deleted = true;
    return std::nullopt;
  }
  if (!text.starts_with(kCondition))
    return Usage{"--for: `" + text + "`: must be condition=Complete, condition=Failed or delete"};
  const std::string until = text.substr(kCondition.size());
  const size_t equals = until.find('=');
  const std::string value = equals == std::string::npos ? "true" : until.substr(equals + 1);
  o.condition = until.substr(0, equals);
  const std::vector<std::string> known = {"Complete", "Failed", "Suspended", "FailureTarget",
                                          "SuccessCriteriaMet"};
  for (const std::string& name : known) {
    if (strcasecmp(name.c_str(), o.condition.c_str()) == 0) o.condition = name;
  }
  if (o.condition.empty() ||
      (strcasecmp(value.c_str(), "true") != 0 && strcasecmp(value.c_str(), "false") != 0)) {
    return Usage{"--for: `" + text + "`: must be condition=NAME or condition=NAME=false"};
  }
  if (std::find(known.begin(), known.end(), o.condition) == known.end())
    return Usage{"--for: `" + o.condition + "`: a job has no such condition" +
                 did_you_mean(o.condition, known)};
  o.condition_value = strcasecmp(value.c_str(), "true") == 0;
  return std::nullopt;
}

}  // namespace

int execute(const WaitOptions& options) {
  const auto client = connect(options.target);
  if (options.timeout_ms)
    client->set_timeout(
        std::clamp<Millis>(*options.timeout_ms, 1, options.target.request_timeout_ms));
  return Waiter(options, *client).run();
}

Verb wait_verb() {
  struct Words {
    WaitOptions o;
    std::vector<std::string> what;
    std::string until, timeout;
  };
  auto w = std::make_shared<Words>();
  return {.title = {"Jobs", "wait", "Wait until jobs are Complete or Failed"},
          .rows = {{"what", "job/J...", "Jobs to wait for", &w->what, kAnything, kRequired},
                   {"--for", "WHAT",
                    "condition=NAME, condition=NAME=false or delete (default: Complete or Failed)",
                    &w->until},
                   {"--timeout", "T",
                    "Time to wait before giving up, such as 2h (default: no limit)", &w->timeout}},
          .asks = {&w->o.target},
          .footer =
              "Examples:\n  muster wait job/sweep\n  muster wait job/sweep job/train --timeout 2h\n"
              "  muster wait job/sweep --for=condition=Complete --timeout 60s\n"
              "Exit codes: 0 condition met, 1 a job Failed, 3 a job was deleted, 124 --timeout "
              "expired.",
          .finish = [w](const Given&) -> Judged {
            if (auto wrong = read_job_names(w->what, w->o.jobs)) return *wrong;
            if (auto wrong = read_limit("--timeout", w->timeout, w->o.timeout_ms)) return *wrong;
            return judged(read_until(w->until, w->o), w->o);
          }};
}

}  // namespace muster::cli
