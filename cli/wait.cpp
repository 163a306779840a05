// muster wait: until a job is what was asked for, or can no longer become it.
//
// Asks again and again rather than watching: a coordinator that restarts meanwhile is sat out, and
// a job is small.
#include "cli/discovery.hpp"
#include "cli/exit_codes.hpp"
#include "cli/objects.hpp"
#include "cli/verbs.hpp"
#include "core/spec/duration.hpp"

#include <algorithm>
#include <iostream>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr Millis kPauseFirst = 20, kPauseMax = 500;  // between two looks
constexpr Millis kPatience = 60'000;                 // with a coordinator that was there and is not

class Waiter {
 public:
  Waiter(const WaitOptions& options, ApiClient& client)
      : options_(options), client_(client), begin_(boot_now()) {}

  int run() {
    Millis pause = kPauseFirst, answered = boot_now();
    bool seen = false;
    for (;;) {
      auto job = object(client_, object_path(Kind::job, options_.target.ns, options_.job));
      if (job) {
        seen = true, answered = boot_now();
        if (const int code = judge(*job); code >= 0) return code;
      } else if (job.error().code == Errc::not_found) {
        if (options_.deleted) return done("deleted");
        return fail(kNotFound, seen ? name() + " was deleted" : job.error().message);
      } else if (job.error().code != Errc::unavailable || !seen ||
                 boot_now() - answered > kPatience) {
        return fail(job.error());
      }
      if (options_.timeout_ms > 0 && boot_now() - begin_ >= options_.timeout_ms) {
        return fail(kTimeout, name() + " is not " + wanted() + " after " +
                                  core::duration_text(options_.timeout_ms));
      }
      Millis rest = pause;
      if (options_.timeout_ms > 0) rest = std::min(rest, begin_ + options_.timeout_ms - boot_now());
      if (rest > 0) usleep(static_cast<useconds_t>(rest * 1000));
      pause = std::min(pause * 3 / 2, kPauseMax);
    }
  }

 private:
  std::string name() const { return "job.batch/" + options_.job; }
  std::string wanted() const {
    if (options_.deleted) return "deleted";
    if (options_.condition.empty()) return "finished";
    return (options_.condition_value ? "" : "not ") + options_.condition;
  }

  int done(const std::string& what) const {
    std::cout << name() << " " << what << std::endl;
    return kDone;
  }

  // -1: not yet.
  int judge(const Json& job) const {
    if (options_.deleted) return -1;
    const JobEnd end = end_of(job);
    if (options_.condition.empty()) {
      if (end == JobEnd::complete) return done("Complete");
      if (end == JobEnd::failed) return failed(job);
      return -1;
    }
    const bool met = !condition_of(job, options_.condition).is_null();
    if (met == options_.condition_value) return done("condition met");
    if (end == JobEnd::failed) return failed(job);
    if (end == JobEnd::complete)
      return fail(kFailed, name() + " is Complete and will not become " + wanted());
    return -1;
  }

  int failed(const Json& job) const {
    const Json& condition = condition_of(job, "Failed");
    return fail(kFailed, name() + " Failed: " + text_at(condition, {"reason"}) + ": " +
                             text_at(condition, {"message"}));
  }

  const WaitOptions& options_;
  ApiClient& client_;
  const Millis begin_;
};

}  // namespace

int execute(const WaitOptions& options) {
  auto client = connect(options.target.api);
  if (!client) return fail(client.error());
  if (options.timeout_ms > 0)
    (*client)->set_timeout(std::max<Millis>(1, std::min<Millis>(options.timeout_ms, 30'000)));
  return Waiter(options, **client).run();
}

}  // namespace muster::cli
