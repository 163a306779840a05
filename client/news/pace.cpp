#include "client/news/pace.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster::cli {
namespace {

constexpr Millis kWindow = 30'000;
constexpr double kSteady = 3;         // a window of this many mean running times gives a pace
constexpr Millis kSteadyMin = 2'000;  // if it is at least this long
constexpr int64_t kSettledMin = 3;    // and this many indexes settled in it
constexpr int64_t kEndsMin = 8;       // ends that give a running time; one per slot if fewer

}  // namespace

void Pace::add(const Look& now) {
  const bool first = looks_.empty();
  // A job that was changed or replaced starts over.
  if (!first && (now.ended < looks_.back().ended || now.settled < looks_.back().settled)) {
    *this = Pace();
    return add(now);
  }
  if (first) {
    start(now.running, std::nullopt);
  } else {
    const Look& last = looks_.back();
    const Millis at = last.at + (now.at - last.at) / 2;
    const int64_t ended = now.ended - last.ended;
    const int64_t started = ended + now.running - last.running;
    if (started > 0) start(started, at);
    if (started < 0) forget(-started);
    end(ended, at);
  }
  looks_.push_back(now);
  while (looks_.size() > 2 && looks_.front().at < now.at - kWindow) looks_.pop_front();
  const int64_t wanted = 2 * std::max(kEndsMin, slots());
  while (ended_.size() > 1 && ended_.front().at < now.at - kWindow &&
         known_ends() - ended_.front().count >= wanted)
    ended_.pop_front();
}

double Pace::per_second() const {
  if (looks_.size() < 2 || looks_.back().at <= looks_.front().at) return 0;
  return 1000.0 * static_cast<double>(looks_.back().settled - looks_.front().settled) /
         static_cast<double>(looks_.back().at - looks_.front().at);
}

std::optional<Millis> Pace::left(int64_t remaining) const {
  if (looks_.empty()) return std::nullopt;
  if (remaining <= 0) return 0;
  const Look& now = looks_.back();
  const auto span = static_cast<double>(now.at - looks_.front().at);
  const int64_t settled = now.settled - looks_.front().settled;
  const int64_t ends = known_ends();
  double ran = ends > 0 ? mean_ran_ms() : 0;
  if (ends > 0 && span >= std::max<double>(kSteady * ran, kSteadyMin) && settled >= kSettledMin)
    return std::llround(static_cast<double>(remaining) * span / static_cast<double>(settled));

  if (now.running == 0 || ends < std::min(kEndsMin, slots())) return std::nullopt;
  // Count pods that have run longer than any ended one: only the short ones may have ended so far.
  double total = ran * static_cast<double>(ends);
  int64_t count = ends;
  for (const Started& one : running_) {
    if (!one.at || now.at - *one.at <= longest_ran()) continue;
    total += static_cast<double>(one.count * (now.at - *one.at));
    count += one.count;
  }
  ran = std::max(1.0, total / static_cast<double>(count));

  struct Slot {
    double busy_ms;
    int64_t count;
  };
  std::vector<Slot> slots_left;
  double longest = 0;
  for (const Started& one : running_) {
    const double age = one.at ? static_cast<double>(now.at - *one.at) : ran / 2;
    slots_left.push_back({std::max(0.0, ran - age), one.count});
    longest = std::max(longest, slots_left.back().busy_ms);
  }
  const auto pods =
      static_cast<int64_t>(std::ceil(static_cast<double>(remaining) * pods_per_index()));
  const int64_t waiting = pods - now.running;
  if (waiting <= 0) return std::llround(longest);
  if (slots() > now.running) slots_left.push_back({0, slots() - now.running});
  // Bisect for the earliest time by which the slots have run all waiting pods.
  const auto done_by = [&](double time) {
    double done = 0;
    for (const Slot& one : slots_left)
      done += std::floor(std::max(0.0, time - one.busy_ms) / ran) * static_cast<double>(one.count);
    return done >= static_cast<double>(waiting);
  };
  double low = 0, high = longest + ran * static_cast<double>(waiting + 1);
  while (high - low > 1) {
    const double middle = (low + high) / 2;
    (done_by(middle) ? high : low) = middle;
  }
  return std::llround(std::max(high, longest));
}

void Pace::start(int64_t count, std::optional<Millis> at) {
  if (count > 0) running_.push_back({at, count});
}

void Pace::end(int64_t count, Millis at) {
  Ended ended{.at = at};
  while (count > 0 && !running_.empty()) {
    Started& oldest = running_.front();
    const int64_t some = std::min(count, oldest.count);
    if (oldest.at) {
      ended.count += some;
      ended.ran_ms += static_cast<double>(some * (at - *oldest.at));
      ended.longest = std::max(ended.longest, at - *oldest.at);
    }
    count -= some;
    oldest.count -= some;
    if (oldest.count == 0) running_.pop_front();
  }
  if (ended.count > 0) ended_.push_back(ended);
}

void Pace::forget(int64_t count) {
  while (count > 0 && !running_.empty()) {
    Started& newest = running_.back();
    const int64_t some = std::min(count, newest.count);
    count -= some;
    newest.count -= some;
    if (newest.count == 0) running_.pop_back();
  }
}

int64_t Pace::slots() const {
  int64_t most = 1;
  for (const Look& one : looks_) most = std::max(most, one.running);
  return most;
}

int64_t Pace::known_ends() const {
  int64_t count = 0;
  for (const Ended& one : ended_) count += one.count;
  return count;
}

double Pace::mean_ran_ms() const {
  double total = 0;
  for (const Ended& one : ended_) total += one.ran_ms;
  return total / static_cast<double>(known_ends());
}

Millis Pace::longest_ran() const {
  Millis longest = 0;
  for (const Ended& one : ended_) longest = std::max(longest, one.longest);
  return longest;
}

double Pace::pods_per_index() const {
  const int64_t settled = looks_.back().settled - looks_.front().settled;
  const int64_t ended = looks_.back().ended - looks_.front().ended;
  return settled > 0 ? std::max(1.0, static_cast<double>(ended) / static_cast<double>(settled)) : 1;
}

}  // namespace muster::cli
