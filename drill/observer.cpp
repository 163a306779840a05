#include "drill/observer.hpp"

#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "drill/jobs.hpp"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

namespace muster::cli::drill {
namespace {

constexpr Millis kReadPause = 10, kSubmitPause = 50, kRequestMax = 10'000;
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

Observer::Observer(Target target, std::string job, std::string prefix)
    : target_([&] {
        target.request_timeout_ms = kRequestMax;
        return target;
      }()),
      job_(std::move(job)),
      prefix_(std::move(prefix)) {
  watcher_ = std::thread([this] { watch(); });
  submitter_ = std::thread([this] { submit(); });
}

Observer::~Observer() {
  stop();
}

void Observer::stop() {
  stop_ = true;
  if (watcher_.joinable()) watcher_.join();
  if (submitter_.joinable()) submitter_.join();
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

void Observer::watch() {
  ApiClient client(target_.api, target_.origin, target_.log_in);
  client.set_timeout(target_.request_timeout_ms);
  const std::string path = object_path(Kind::job, target_.ns, job_);
  do {
    ++busy_;
    if (paused_) {
      --busy_;
      continue;
    }
    const Millis asked = boot_now();
    auto answer = client.get(path);
    const Millis answered = boot_now();
    if (answer && (answer->ok() || answer->status == 404)) {
      const std::lock_guard lock(mutex_);
      answers_.emplace_back(asked, answered);
      ++reads_;
      std::vector<std::string> wrong;
      if (answer->ok()) {
        const Json& job = answer->json;
        wrong = memory_.compare(job);
        standing_.succeeded = number_at(job, {"status", "succeeded"});
        standing_.failed_indexes =
            static_cast<int64_t>(index_set(text_at(job, {"status", "failedIndexes"})).size());
        standing_.ended = end_of(job) != JobEnd::none;
      } else {
        wrong.push_back("the canary, accepted with 201, was answered with 404");
      }
      for (std::string& one : wrong)
        if (went_back_.size() < kWentBackMax) went_back_.push_back(std::move(one));
    }
    --busy_;
  } while (rest(kReadPause));
}

void Observer::submit() {
  ApiClient client(target_.api, target_.origin, target_.log_in);
  client.set_timeout(target_.request_timeout_ms);
  for (size_t i = 0; i < kSubmissionsMax;) {
    ++busy_;
    if (!paused_) {
      // Never reuse a name: a request without an answer may have been accepted.
      const std::string name = prefix_ + "-" + std::to_string(i++);
      auto answer = client.post(object_path(Kind::job, target_.ns), tiny_job(name));
      if (answer && answer->status == 201) {
        const std::lock_guard lock(mutex_);
        accepted_.emplace_back(name, boot_now());
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

std::optional<Millis> Observer::answered_after(Millis instant) const {
  const std::lock_guard lock(mutex_);
  const auto first = std::lower_bound(
      answers_.begin(), answers_.end(), instant,
      [](const std::pair<Millis, Millis>& answer, Millis at) { return answer.first < at; });
  if (first == answers_.end()) return std::nullopt;
  return first->second;
}

}  // namespace muster::cli::drill
