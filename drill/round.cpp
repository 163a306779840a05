#include "drill/round.hpp"

#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/text.hpp"
#include "drill/jobs.hpp"

#include <algorithm>
#include <fstream>
#include <set>

namespace muster::cli::drill {
namespace {

constexpr Millis kRoundLook = 25;      // between reads of the witnesses
constexpr Millis kStuckMax = 120'000;  // without progress; then the canary is stuck
constexpr Millis kDeleteMax = 10'000;  // until the jobs of the round are gone
constexpr size_t kLogMax = 100'000;    // bytes of a log that are kept

bool began(const Testimony& testimony, PodKey pod) {
  return std::any_of(testimony.lines.begin(), testimony.lines.end(),
                     [pod](const WitnessLine& line) { return !line.end && line.pod == pod; });
}

}  // namespace

RoundRun::RoundRun(RoundSettings settings, Pause pause, Show show)
    : settings_(std::move(settings)),
      pause_(std::move(pause)),
      show_(std::move(show)),
      client_(*settings_.site.client),
      injector_(settings_.site, pause_) {
  progress_.of_faults = settings_.steps.size();
  progress_.of_ended = expected_ends(settings_.canary);
}

Result<Round> RoundRun::run() {
  Round round;
  round.job = settings_.job;
  const Target& target = settings_.site.target;
  const Json job =
      manifest(settings_.canary,
               {settings_.job, target.ns,
                witness_command(settings_.executable, settings_.witness_dir, settings_.canary),
                settings_.node_labels});
  const Millis begin = boot_now();
  auto made = create_job(client_, target.ns, dumped(job), false);
  if (!made) return made.error();
  observer_ = std::make_unique<Observer>(target, settings_.job, settings_.job + "-small",
                                         settings_.site.each_address);
  const Error interrupted{Errc::unavailable, "interrupted", {}};
  bool go_on = true;
  for (const Step& step : settings_.steps) {
    progress_.now = std::string("next: ") + name(step.fault);
    go_on = wait_for_ends(step.at_ends) && pause_(step.delay_ms) && look();
    if (!go_on) break;
    progress_.now = name(step.fault);
    show_(progress_);
    const uint32_t flying = in_flight();
    Injected fault = injector_.inject(step, *observer_);
    fault.in_flight = flying;
    round.faults.push_back(std::move(fault));
    ++progress_.faults;
    go_on = pause_(0);
    if (!go_on) break;
  }
  progress_.now = settings_.steps.empty() ? "without faults" : "settling";
  go_on = go_on && wait_for_job();
  round.took_ms = boot_now() - begin;
  observer_->stop();
  if (!go_on) {
    clean_up();
    return interrupted;
  }
  Evidence evidence;
  evidence.canary = settings_.canary;
  evidence.faults = round.faults;
  evidence.gap = injector_.gap();
  collect(evidence);
  round.judgement = judge(evidence);
  round.shown = evidence.shown;
  round.accepted = evidence.accepted;
  round.forgotten = static_cast<uint32_t>(evidence.forgotten.size());
  round.reads = evidence.reads;
  round.logs_on_disk = evidence.logs_on_disk;
  clean_up();
  return round;
}

bool RoundRun::look() {
  if (settings_.site.scratch != nullptr)
    for (std::string& one : settings_.site.scratch->supervise()) doubts_.push_back(std::move(one));
  if (auto read = read_testimony(settings_.witness_dir)) testimony_ = std::move(*read);
  progress_.ended = static_cast<uint32_t>(std::count_if(
      testimony_.lines.begin(), testimony_.lines.end(), [](const auto& line) { return line.end; }));
  show_(progress_);
  return pause_(0);
}

uint32_t RoundRun::in_flight() const {
  std::set<PodKey> live;
  for (const WitnessLine& line : testimony_.lines) {
    if (line.end)
      live.erase(line.pod);
    else
      live.insert(line.pod);
  }
  return static_cast<uint32_t>(live.size());
}

// Also returns when the canary has finished or is stuck.
bool RoundRun::wait_for_ends(uint32_t ends) {
  Millis moved = boot_now();
  for (uint32_t before = 0; look();) {
    if (progress_.ended >= ends || observer_->standing().ended) return true;
    if (progress_.ended != before) moved = boot_now();
    before = progress_.ended;
    if (boot_now() - moved > kStuckMax) return true;
    if (!pause_(kRoundLook)) break;
  }
  return false;
}

bool RoundRun::wait_for_job() {
  Millis moved = boot_now();
  for (uint32_t before = 0; look();) {
    if (observer_->standing().ended) return true;
    if (progress_.ended != before) moved = boot_now();
    before = progress_.ended;
    if (boot_now() - moved > kStuckMax) {
      doubts_.push_back("the canary has not ended: nothing happened for " + short_span(kStuckMax));
      return true;
    }
    if (!pause_(kRoundLook)) break;
  }
  return false;
}

void RoundRun::collect(Evidence& evidence) {
  if (settings_.site.scratch != nullptr)
    if (Status s = settings_.site.scratch->wait_ready(); !s)
      evidence.doubts.push_back(s.error().message);
  auto testimony = read_testimony(settings_.witness_dir);
  if (testimony)
    evidence.witness = on_one_clock(std::move(*testimony), boot_id(), wall_now() - boot_now());
  else
    evidence.doubts.push_back(testimony.error().message);
  evidence.went_back = observer_->went_back();
  evidence.reads = observer_->reads();
  read_shown(evidence);
  if (evidence.reachable) {
    read_logs(evidence);
    check_accepted(evidence);
    recount(evidence);
  }
  evidence.doubts.insert(evidence.doubts.end(), doubts_.begin(), doubts_.end());
}

void RoundRun::read_shown(Evidence& evidence) {
  const Target& target = settings_.site.target;
  auto job = object(client_, object_path(Kind::job, target.ns, settings_.job));
  evidence.reachable = job.ok();
  if (!job) {
    evidence.doubts.push_back(job.error().message);
    return;
  }
  job_uid_ = text_at(*job, {"metadata", "uid"});
  const Json& status = at(*job, {"status"});
  evidence.shown.succeeded = index_set(text_at(status, {"completedIndexes"}));
  evidence.shown.failed = index_set(text_at(status, {"failedIndexes"}));
  evidence.shown.failed_pods = static_cast<uint64_t>(number_at(status, {"failed"}));
  const JobEnd end = end_of(*job);
  evidence.shown.condition = end == JobEnd::complete ? "Complete"
                             : end == JobEnd::failed ? "Failed"
                                                     : "";
  Status read = each_attempt(client_, target.ns, settings_.job, "", [&](const Json& row) {
    CountedAttempt attempt;
    attempt.pod = {static_cast<uint32_t>(number_at(row, {"index"})),
                   static_cast<uint32_t>(number_at(row, {"attempt"}))};
    attempt.pod_name = text_at(row, {"pod"});
    attempt.uid = text_at(row, {"podUID"});
    attempt.node = text_at(row, {"node"});
    attempt.cause = text_at(row, {"cause"});
    attempt.counted = text_at(row, {"counted"});
    attempt.disruption = text_at(row, {"disruption"});
    attempt.code = static_cast<int32_t>(number_at(row, {"exitCode"}));
    evidence.attempts.push_back(std::move(attempt));
  });
  if (!read) {
    evidence.reachable = false;
    evidence.doubts.push_back("the history of the canary: " + read.error().message);
  }
}

// The logs of a node that was lost and came back are on its disk, but the API no longer finds the
// pods of its earlier incarnation.
std::optional<std::string> RoundRun::log_on_disk(const CountedAttempt& attempt,
                                                 const Evidence& evidence) {
  const Scratch* scratch = settings_.site.scratch;
  const bool lost = std::any_of(evidence.faults.begin(), evidence.faults.end(),
                                [&attempt](const Injected& fault) {
                                  return disrupts(fault.fault) && fault.node == attempt.node;
                                });
  if (!lost) return std::nullopt;
  if (scratch == nullptr) {
    auto [logs, first] = node_logs_.try_emplace(attempt.node);
    for (const DrillNode& node : settings_.site.nodes) {
      if (!first || node.name != attempt.node) continue;
      if (auto answer = settings_.site.reach->ask(node, "logs", job_uid_))
        logs->second = at(*answer, {"logs"});
    }
    const Json& text = at(logs->second, {attempt.pod_name.c_str()});
    return text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt;
  }
  const std::string path = scratch->options().dir + "/" + attempt.node + "/logs/" + job_uid_ + "/" +
                           attempt.pod_name + ".main.stdout";
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

void RoundRun::read_logs(Evidence& evidence) {
  for (const CountedAttempt& attempt : evidence.attempts) {
    if (!began(evidence.witness, attempt.pod)) continue;
    auto answer = client_.get(own_path(settings_.site.target.ns, settings_.job, "log") +
                              "?index=" + std::to_string(attempt.pod.index) +
                              "&attempt=" + std::to_string(attempt.pod.attempt));
    if (answer && answer->ok()) {
      evidence.logs.push_back({attempt.pod, cut(answer->body, kLogMax)});
    } else if (auto text = log_on_disk(attempt, evidence)) {
      evidence.logs.push_back({attempt.pod, cut(*text, kLogMax)});
      ++evidence.logs_on_disk;
    } else {
      // Logs cannot be read on a node whose agent has not come back.
      const bool away = std::any_of(evidence.faults.begin(), evidence.faults.end(),
                                    [&attempt](const Injected& fault) {
                                      return !fault.absent.empty() && fault.node == attempt.node;
                                    });
      if (away) continue;
      evidence.unread_logs.push_back("the log of " + to_string(attempt.pod) + " on " +
                                     attempt.node + ": " +
                                     (answer ? refusal(*answer) : answer.error()).message);
    }
  }
}

void RoundRun::check_accepted(Evidence& evidence) {
  auto list = object(client_, object_path(Kind::job, settings_.site.target.ns));
  if (!list) {
    evidence.doubts.push_back("the list of jobs: " + list.error().message);
    return;
  }
  std::set<std::string> there;
  for (const Json& job : at(*list, {"items"})) there.insert(text_at(job, {"metadata", "name"}));
  for (const auto& [name, accepted_ms] : observer_->accepted()) {
    // Jobs accepted between backup and restore were lost with the replaced state.
    if (evidence.gap && accepted_ms >= evidence.gap->backup_ms &&
        accepted_ms <= evidence.gap->restored_ms)
      continue;
    ++evidence.accepted;
    if (!there.contains(name)) evidence.forgotten.push_back("job/" + name + " was accepted");
  }
}

void RoundRun::recount(Evidence& evidence) {
  auto answer = object(client_, "/apis/muster.dev/v1/verification");
  if (!answer) {
    // Needs the administrator role, which the operator of a drill may lack.
    if (settings_.site.scratch != nullptr)
      evidence.doubts.push_back("the recount: " + answer.error().message);
    return;
  }
  for (const Json& line : at(*answer, {"mismatches"}))
    if (line.is_string()) evidence.unsound.push_back(line);
}

// A scratch cluster is deleted as a whole. If the API does not answer, the drill deletes what is
// left at its end.
void RoundRun::clean_up() {
  if (settings_.site.scratch != nullptr) return;
  (void)delete_jobs(client_, settings_.site.target.ns, settings_.job, kDeleteMax);
}

}  // namespace muster::cli::drill
