#include "client/follow/follow.hpp"

#include "base/printable.hpp"
#include "base/text/time_text.hpp"
#include "client/news/attempt_feed.hpp"
#include "client/news/attempts.hpp"
#include "client/news/failure_news.hpp"
#include "client/news/progress.hpp"
#include "client/news/wait_news.hpp"
#include "client/terminal/safe_output.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>

namespace muster::cli {
namespace {

constexpr Millis kFollowFirst = 10, kFollowMax = 250;  // between two polls
constexpr size_t kFailuresMax = 5, kLinesMax = 5;

}  // namespace

Follow follow(ApiClient& client, Signals& signals, const std::string& ns, const std::string& name,
              const FollowWishes& wishes) {
  const Millis begin = boot_now();
  const std::optional<Millis> timeout_ms = wishes.timeout_ms;
  Millis answered = begin, pause = kFollowFirst;
  const Millis pause_max = wishes.output != nullptr ? wishes.output->pause_max() : kFollowMax;
  Progress progress(begin, wishes.color);
  const bool all = wishes.output != nullptr && wishes.output->wants_ended();
  AttemptFeed feed(client, ns, name, all);
  FailureNews news(client, ns, name);
  WaitNews waits(client, ns, name);
  SameObject same(object_path(Kind::job, ns, name), wishes.known);
  Follow out;
  for (;;) {
    auto job = same.get(client);
    const Millis now = boot_now();
    if (job) {
      answered = now;
      out.job = std::move(*job);
      const JobEnd end = end_of(out.job);
      std::vector<EndedAttempt> ended;
      if (all || (end == JobEnd::none && !wishes.quiet && !news.enough()))
        ended = feed.look(out.job);
      const auto clear = [&progress] { progress.clear(); };
      if (wishes.also) wishes.also(clear);
      if (wishes.output != nullptr) {
        wishes.output->look(out.job, ended, end != JobEnd::none);
        wishes.output->flush(clear);
      }
      if (!wishes.quiet) {
        news.add(out.job, ended, now);
        if (end == JobEnd::none) news.print(now, clear);  // otherwise the summary shows them
        const Standing standing = standing_of(out.job);
        const bool mpi = !text_at(out.job, {"metadata", "annotations", "muster.dev/mpi"}).empty();
        if (end == JobEnd::none) waits.look(standing, mpi, now, clear);
        progress.show(standing, now);
      }
      if (client.met_foreign()) {  // in place of a list or a log
        progress.clear();
        out.error = *client.met_foreign();
        out.how = Followed::unreachable;
        return out;
      }
      if (end == JobEnd::none && wishes.enough && wishes.enough(out.job)) {
        if (wishes.output != nullptr) {
          wishes.output->look(out.job, {}, true);
          wishes.output->flush(clear);
        }
        out.how = Followed::complete;
        return out;
      }
      if (end != JobEnd::none) {
        out.how = end == JobEnd::complete ? Followed::complete : Followed::failed;
        return out;
      }
    } else {
      out.error = job.error();
      out.how = job.error().code == Errc::not_found ? Followed::gone : Followed::unreachable;
      if (job.error().code != Errc::unavailable || now - answered > kAbsenceMax) return out;
    }
    if (wishes.stopped && wishes.stopped()) {
      out.how = Followed::unreachable;
      return out;
    }
    Millis rest = pause;
    if (timeout_ms) rest = std::clamp<Millis>(begin + *timeout_ms - now, 0, pause);
    if (reader_left() || signals.next(rest) != 0) {
      out.how = Followed::interrupted;
      return out;
    }
    if (timeout_ms && boot_now() - begin >= *timeout_ms) {
      out.how = Followed::timeout;
      return out;
    }
    pause = std::min(pause * 3 / 2, pause_max);
  }
}

std::string stop_text(Followed how) {
  if (how == Followed::timeout) return "--timeout expired";
  return reader_left() ? "nobody reads the output" : "interrupted";
}

namespace {

// For an MPI job: how its leader ended, or which of its workers failed; empty if the job ended for
// another reason.
std::string leader_text(const Json& job, const Standing& s) {
  if (!s.led) return "";
  if (end_of(job) == JobEnd::complete) return "the leader (index 0) succeeded";
  if (failed_indexes(job).contains(0)) return "the leader (index 0) failed";
  const std::string reason = text_at(condition_of(job, "Failed"), {"reason"});
  if (reason != "MaxFailedIndexesExceeded" && reason != "FailedIndexes") return "";
  return (s.lost.count == 1 ? "the worker of index " : "the workers of indexes ") + s.lost.set +
         " failed";
}

std::string counts_text(const Json& job) {
  const Standing s = standing_of(job);
  const Json& failed = condition_of(job, "Failed");
  std::string end = text_at(job, {"status", "completionTime"});
  if (end.empty()) end = text_at(failed, {"lastTransitionTime"});
  const auto from = parse_time(text_at(job, {"status", "startTime"})), to = parse_time(end);
  std::string counts = s.completions ? std::to_string(s.succeeded) + "/" +
                                           std::to_string(*s.completions) + " succeeded"
                                     : std::to_string(s.succeeded) + " succeeded";
  if (text_at(condition_of(job, "SuccessCriteriaMet"), {"reason"}) == "SuccessPolicy")
    counts += ", as spec.successPolicy requires";
  if (s.failed > 0)
    counts += ", " + std::to_string(s.failed) + (s.failed == 1 ? " failed pod" : " failed pods");
  if (s.lost.count > 0) counts += std::string(", failed") + s.noun() + s.lost.set;
  if (s.cancelled.count > 0) counts += std::string(", cancelled") + s.noun() + s.cancelled.set;
  if (const std::string leader = leader_text(job, s); !leader.empty()) counts = leader;
  if (from && to) counts += ", took " + short_span(*to - *from);
  return counts;
}

std::string failures_below(ApiClient& client, const std::string& ns, const Json& job,
                           const Hint& hint) {
  auto failures = failures_of(client, ns, job, kFailuresMax, kLinesMax);
  if (!failures) return "";
  const std::string shown = failures->all > 0 ? "\n" + failures_text(*failures, "  ") + "\n" : "";
  return shown + "  " + hint(*failures) + "\n";
}

}  // namespace

std::string failure_details(ApiClient& client, const std::string& ns, const Json& job,
                            const Hint& hint) {
  std::string out;
  if (const std::string rule = rule_text(job); !rule.empty()) out += "  " + rule + "\n";
  out += "  " + counts_text(job) + "\n";
  return out + failures_below(client, ns, job, hint);
}

std::string summary_text(ApiClient& client, const std::string& ns, const Json& job,
                         const Paint& paint, const Hint& hint) {
  const std::string name = "job/" + text_at(job, {"metadata", "name"});
  const Json& failed = condition_of(job, "Failed");
  if (failed.is_null())
    return name + " " + paint.green("Complete") + ": " + counts_text(job) + "\n";
  const std::string head = name + " " + paint.red("Failed") + ": ";
  // The end of its leader or workers explains the end of an MPI job; the rule would not.
  if (!leader_text(job, standing_of(job)).empty())
    return head + visible(counts_text(job) + "\n" + failures_below(client, ns, job, hint));
  return head + visible(text_at(failed, {"reason"}) + ": " + text_at(failed, {"message"}) + "\n" +
                        failure_details(client, ns, job, hint));
}

}  // namespace muster::cli
