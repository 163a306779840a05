#include "drill/observer.hpp"

#include "base/network/address_list.hpp"
#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "drill/jobs.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <unistd.h>

namespace muster::cli::drill {
namespace {

constexpr Millis kReadPause = 10, kSubmitPause = 50, kRequestMax = 10'000;
constexpr Millis kEachRequestMax = 1'000;  // of one of several coordinators: it may be frozen
constexpr size_t kSubmissionsMax = 2'000;
constexpr size_t kWentBackMax = 100;

bool covers(const core::IndexSet& now, const core::IndexSet& before) {
  core::IndexSet both = now;
  both.insert_all(before);
  return both == now;
}

}  // namespace

std::vector<std::string> Memory::compare(const Json& job) {
  std::vector<std::string> wrong;
  const auto number = [&](const char* what, int64_t& before, int64_t now) {
    if (now < before)
      wrong.push_back(std::string(what) + " went from " + std::to_string(before) + " to " +
                      std::to_string(now));
    before = now;
  };
  const auto set = [&](const char* what, core::IndexSet& before, core::IndexSet now) {
    if (!covers(now, before))
      wrong.push_back(std::string(what) + " went from " + before.text() + " to " + now.text());
    before = std::move(now);
  };
  const auto instant = [&](const char* what, std::string& before, std::string now) {
    if (!before.empty() && now != before)
      wrong.push_back(std::string(what) + " went from " + before + " to " + now);
    before = std::move(now);
  };
  const Json& status = at(job, {"status"});
  number("resourceVersion", version_,
         std::atoll(text_at(job, {"metadata", "resourceVersion"}).c_str()));
  number("succeeded", succeeded_, number_at(status, {"succeeded"}));
  number("failed", failed_, number_at(status, {"failed"}));
  set("completedIndexes", completed_, index_set(text_at(status, {"completedIndexes"})));
  set("failedIndexes", failed_indexes_, index_set(text_at(status, {"failedIndexes"})));
  instant("startTime", started_, text_at(status, {"startTime"}));
  instant("completionTime", finished_, text_at(status, {"completionTime"}));
  std::vector<std::string> conditions;
  for (const Json& condition : at(status, {"conditions"}))
    if (text_at(condition, {"status"}) == "True")
      conditions.push_back(text_at(condition, {"type"}));
  for (const std::string& before : conditions_)
    if (std::find(conditions.begin(), conditions.end(), before) == conditions.end())
      wrong.push_back("condition " + before + " was withdrawn");
  conditions_ = std::move(conditions);
  return wrong;
}

namespace {

std::vector<Target> targets_of(const Target& target, bool each) {
  std::vector<Target> targets;
  for (const std::string& address : each ? split_addresses(target.api) : std::vector{target.api}) {
    targets.push_back(target);
    targets.back().api = address;
    targets.back().request_timeout_ms = each ? kEachRequestMax : kRequestMax;
  }
  return targets;
}

}  // namespace

Observer::Observer(const Target& target, std::string job, std::string prefix, bool each)
    : targets_(targets_of(target, each)), job_(std::move(job)), prefix_(std::move(prefix)) {
  for (size_t at = 0; at < targets_.size(); ++at) {
    threads_.emplace_back([this, at] { watch(at); });
    threads_.emplace_back([this, at] { submit(at); });
  }
}

Observer::~Observer() {
  stop();
}

void Observer::stop() {
  stop_ = true;
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void Observer::pause() {
  paused_ = true;
  while (busy_ > 0) usleep(1'000);
  const std::lock_guard lock(mutex_);
  memory_.forget();
}

void Observer::resume() {
  paused_ = false;
}

bool Observer::rest(Millis span_ms) const {
  usleep(static_cast<useconds_t>(span_ms * 1'000));
  return !stop_;
}

void Observer::watch(size_t at) {
  const Target& target = targets_[at];
  ApiClient client(target.api, target.origin, target.log_in);
  client.set_timeout(target.request_timeout_ms);
  const std::string path = object_path(Kind::job, target.ns, job_);
  do {
    ++busy_;
    if (paused_) {
      --busy_;
      continue;
    }
    // What had been shown by anyone when we asked.
    Memory known = [this] {
      const std::lock_guard lock(mutex_);
      return memory_;
    }();
    const Millis asked = boot_now();
    auto answer = client.get(path);
    const Millis answered = boot_now();
    if (answer && (answer->ok() || answer->status == 404)) {
      const std::lock_guard lock(mutex_);
      ++reads_;
      std::vector<std::string> wrong;
      int64_t counted = 0;
      if (answer->ok()) {
        const Json& job = answer->json;
        wrong = known.compare(job);
        if (known.knows(memory_)) {
          memory_ = known;
          standing_.succeeded = number_at(job, {"status", "succeeded"});
          standing_.failed_indexes =
              static_cast<int64_t>(index_set(text_at(job, {"status", "failedIndexes"})).size());
          standing_.ended = end_of(job) != JobEnd::none;
        }
        counted = number_at(job, {"status", "succeeded"}) + number_at(job, {"status", "failed"});
      } else {
        wrong.push_back("the canary, accepted with 201, was answered with 404");
      }
      answers_.push_back({asked, answered, at, counted});
      for (std::string& one : wrong)
        if (went_back_.size() < kWentBackMax) went_back_.push_back(std::move(one));
    }
    --busy_;
  } while (rest(kReadPause));
}

void Observer::submit(size_t at) {
  const Target& target = targets_[at];
  ApiClient client(target.api, target.origin, target.log_in);
  client.set_timeout(target.request_timeout_ms);
  const std::string prefix = prefix_ + "-" + (at == 0 ? "" : std::to_string(at) + "-");
  for (size_t i = 0; i < kSubmissionsMax;) {
    ++busy_;
    if (!paused_) {
      // Never reuse a name: a request without an answer may have been accepted.
      const std::string name = prefix + std::to_string(i++);
      const Millis asked = boot_now();
      auto answer = client.post(object_path(Kind::job, target.ns), tiny_job(name));
      if (answer && answer->status == 201) {
        const std::lock_guard lock(mutex_);
        accepted_.emplace_back(name, boot_now());
        acceptances_.push_back({asked, boot_now(), at, 0});
      }
    }
    --busy_;
    if (!rest(kSubmitPause)) return;
  }
}

Observer::Standing Observer::standing() const {
  const std::lock_guard lock(mutex_);
  return standing_;
}

std::vector<std::string> Observer::went_back() const {
  const std::lock_guard lock(mutex_);
  return went_back_;
}

std::vector<std::pair<std::string, Millis>> Observer::accepted() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

std::vector<Observer::Answer> Observer::since(const std::vector<Answer>& answers, Millis instant,
                                              const std::string& except) const {
  const std::lock_guard lock(mutex_);
  std::vector<Answer> found;
  std::copy_if(answers.begin(), answers.end(), std::back_inserter(found), [&](const Answer& one) {
    return one.asked >= instant && (except.empty() || targets_[one.at].api != except);
  });
  return found;
}

std::optional<Millis> Observer::answered_after(Millis instant, const std::string& except) const {
  const std::vector<Answer> found = since(answers_, instant, except);
  return found.empty() ? std::nullopt : std::optional(found.front().answered);
}

std::optional<Millis> Observer::accepted_after(Millis instant, const std::string& except) const {
  const std::vector<Answer> found = since(acceptances_, instant, except);
  return found.empty() ? std::nullopt : std::optional(found.front().answered);
}

std::optional<Millis> Observer::counted_after(Millis instant, const std::string& except) const {
  const std::vector<Answer> found = since(answers_, instant, except);
  for (const Answer& one : found)
    if (one.counted > found.front().counted) return one.answered;
  return std::nullopt;
}

Millis Observer::longest_pause(Millis from, Millis until, bool of_reads) const {
  Millis longest = 0, last = from;
  for (const Answer& one : since(of_reads ? answers_ : acceptances_, from, "")) {
    if (one.answered > until) break;
    longest = std::max(longest, one.answered - last);
    last = one.answered;
  }
  return std::max(longest, until - last);
}

std::vector<std::string> Observer::answers_of(const std::string& address, Millis from,
                                              Millis until) const {
  std::vector<std::string> found;
  for (const auto& [answers, what] : {std::pair{&answers_, "read"}, {&acceptances_, "submission"}})
    for (const Answer& one : since(*answers, from, ""))
      if (one.asked <= until && targets_[one.at].api == address)
        found.push_back(std::string("a ") + what + " asked at " + std::to_string(one.asked) +
                        " ms was answered at " + std::to_string(one.answered) + " ms");
  return found;
}

}  // namespace muster::cli::drill
