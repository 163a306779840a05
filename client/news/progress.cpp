#include "client/news/progress.hpp"

#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/status_line.hpp"
#include "client/terminal/text.hpp"
#include "core/index_set.hpp"

#include <algorithm>
#include <cstdio>

namespace muster::cli {
namespace {

constexpr char kMpiAnnotation[] = "muster.dev/mpi";
constexpr size_t kIndexesMax = 24;  // characters

}  // namespace

Standing standing_of(const Json& job) {
  Standing s;
  if (const Json& n = at(job, {"spec", "completions"}); n.is_number_integer())
    s.completions = n.get<int64_t>();
  s.succeeded = number_at(job, {"status", "succeeded"});
  s.failed = number_at(job, {"status", "failed"});
  s.running = number_at(job, {"status", "ready"});
  s.active = number_at(job, {"status", "active"});
  s.terminating = number_at(job, {"status", "terminating"});
  const core::IndexSet failed = failed_indexes(job), cancelled = cancelled_indexes(job);
  if (s.completions > 0 && (!failed.empty() || !cancelled.empty())) {
    const auto tasks = tasks_of(job);
    s.tasks = tasks.has_value();
    for (const auto& [from, to] : {std::pair(&failed, &s.lost), {&cancelled, &s.cancelled}})
      *to = {static_cast<int64_t>(from->size()), tasks ? tasks->numbers(*from) : from->text()};
  }
  s.led = !text_at(job, {"metadata", "annotations", kMpiAnnotation}).empty() &&
          at(job, {"spec", "successPolicy"}).is_object();
  s.suspended = !condition_of(job, "Suspended").is_null();
  // A round runs only some indexes, and its counts cover only these.
  if (const std::string some = text_at(job, {"metadata", "annotations", "muster.dev/indexes"});
      !some.empty() && s.completions > 0)
    s.completions =
        static_cast<int64_t>(core::IndexSet::parse_lenient(some, *s.completions).size());
  s.jobs_over = end_of(job) == JobEnd::none ? 0 : 1;
  return s;
}

std::string progress_text(const Standing& s, double per_second, std::optional<Millis> left_ms,
                          Millis elapsed_ms, size_t bar) {
  std::string out;
  if (s.led && s.completions > 0) {
    out = std::to_string(s.running) + "/" + std::to_string(*s.completions) + " running";
  } else if (s.completions > 0) {
    if (bar > 0) {
      const auto full = static_cast<size_t>(
          static_cast<double>(bar) * static_cast<double>(std::min(s.settled(), *s.completions)) /
          static_cast<double>(*s.completions));
      out += "[" + std::string(full, '#') + std::string(bar - full, '-') + "] ";
    }
    out += std::to_string(s.succeeded) + "/" + std::to_string(*s.completions);
  } else {
    out += std::to_string(s.succeeded) + " succeeded";
  }
  if (!s.led) out += "  running " + std::to_string(s.running);
  if (s.active > s.running) out += "  waiting " + std::to_string(s.active - s.running);
  if (s.terminating > 0) out += "  ending " + std::to_string(s.terminating);
  if (s.failed > 0) out += "  failed pods " + std::to_string(s.failed);
  for (const auto& [word, which] : {std::pair("failed", &s.lost), {"cancelled", &s.cancelled}}) {
    if (which->count == 0) continue;
    out += std::string("  ") + word + s.noun() + std::to_string(which->count);
    if (!which->set.empty()) out += " (" + cut_set(which->set, kIndexesMax) + ")";
  }
  if (s.suspended) out += "  suspended";
  if (s.jobs > 1) out += "  jobs " + std::to_string(s.jobs_over) + "/" + std::to_string(s.jobs);
  if (per_second > 0 && !s.led) {
    char rate[32];
    std::snprintf(rate, sizeof rate, per_second < 10 ? "  %.1f/s" : "  %.0f/s", per_second);
    out += rate;
  }
  if (left_ms && s.completions > s.settled() && !s.led && !s.suspended)
    out += "  about " + clock_span(*left_ms + 999) + " left";
  return out + "  " + clock_span(elapsed_ms);
}

std::string cut_set(const std::string& indexes, size_t width) {
  if (indexes.size() <= width) return indexes;
  const size_t comma = indexes.rfind(',', width > 4 ? width - 4 : 0);
  return comma == std::string::npos ? cut(indexes, width) : indexes.substr(0, comma + 1) + "...";
}

void Standing::add(const Standing& other) {
  if (completions && other.completions)
    *completions += *other.completions;
  else
    completions.reset();
  succeeded += other.succeeded;
  failed += other.failed;
  running += other.running;
  active += other.active;
  terminating += other.terminating;
  lost = {lost.count + other.lost.count, ""};
  cancelled = {cancelled.count + other.cancelled.count, ""};
  tasks = false;
  suspended = suspended && other.suspended;
  led = led && other.led;
  jobs += other.jobs;
  jobs_over += other.jobs_over;
}

void Progress::show(const Standing& standing, Millis now) {
  pace_.add({.at = now,
             .settled = standing.settled(),
             .ended = standing.succeeded + standing.failed,
             .running = standing.running});
  // Times and rates change all the time; a plain line is printed only when something else changes.
  const std::string facts = progress_text(standing, 0, std::nullopt, 0, 0);
  line_.show(now, facts, [&] {
    const int64_t remaining = standing.completions.value_or(0) - standing.settled();
    return progress_text(standing, pace_.per_second(), pace_.left(remaining), line_.elapsed(now),
                         line_.terminal() ? kBarColumns : 0);
  });
}

}  // namespace muster::cli
