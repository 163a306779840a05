#include "drill/proof/judge.hpp"

#include <algorithm>
#include <map>

namespace muster::cli::drill {
namespace {

constexpr int32_t kSignalled = 128;  // higher exit codes: ended by a signal
constexpr char kNodeLost[] = "DeletionByTaintManager";

std::string plural(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string show(PodKey pod) {
  return "index " + std::to_string(pod.index) + " attempt " + std::to_string(pod.attempt);
}

std::string show(const WitnessLine& line) {
  return show(line.pod) + " (" + line.uid + ") on " + line.node +
         (line.end ? ": wrote its end with exit code " + std::to_string(line.code)
                   : ": wrote its start as pid " + std::to_string(line.pid)) +
         " at " + std::to_string(line.boot_ms) + " ms";
}

std::string show(const CountedAttempt& row) {
  return show(row.pod) + " on " + row.node + ": counted as " + row.counted + ", " + row.cause +
         " with exit code " + std::to_string(row.code) +
         (row.disruption.empty() ? "" : ", " + row.disruption);
}

// Boot clocks are comparable only within one boot; otherwise fall back to the wall clocks.
bool before(const WitnessLine& a, const WitnessLine& b) {
  return a.boot == b.boot ? a.boot_ms < b.boot_ms : a.wall_ms < b.wall_ms;
}

class Judge {
 public:
  explicit Judge(const Evidence& evidence) : e_(evidence) {}

  Judgement run() {
    read_witness();
    read_history();
    if (!e_.gap) find_returned();  // after a restore, numbering continues far above
    compare_ends();
    check_order();
    if (e_.reachable) predict();
    check_logs();
    for (const std::string& one : e_.went_back) add(Promise::never_back, one);
    for (const std::string& one : e_.forgotten) add(Promise::accepted_stays, one);
    for (const std::string& one : e_.unsound) add(Promise::state_sound, one);
    for (const Injected& fault : e_.faults)
      for (const std::string& one : fault.answered_late) add(Promise::one_leads, one);
    conclude();
    return std::move(out_);
  }

 private:
  struct Witnessed {
    std::vector<const WitnessLine*> starts, ends;
  };

  void add(Promise promise, std::string fact) { facts_[promise].push_back(std::move(fact)); }

  // Happened between backup and restore, so the restored state need not contain it.
  bool excused(const Witnessed& witnessed) const {
    if (!e_.gap) return false;
    const auto within = [this](const std::vector<const WitnessLine*>& lines, Millis slack_ms) {
      return std::any_of(lines.begin(), lines.end(), [&](const WitnessLine* line) {
        return line->boot_ms >= e_.gap->backup_ms - slack_ms &&
               line->boot_ms <= e_.gap->restored_ms;
      });
    };
    // An end just before the backup may have been reported just after it.
    return within(witnessed.starts, 0) || within(witnessed.ends, kDoubtMs);
  }

  // Whether a confirmed fault of this node may have ended what ran there at the time.
  bool explained(const std::string& node, const Witnessed* witnessed) const {
    for (const Injected& fault : e_.faults) {
      // If a daemon does not come back, its node is lost, whatever ended the daemon.
      const bool away = !fault.absent.empty();
      if (!fault.confirmed || !(disrupts(fault.fault) || away) || fault.node != node) continue;
      if (witnessed == nullptr) return true;
      const bool started = away || witnessed->starts.empty() ||
                           witnessed->starts.front()->boot_ms <= fault.until_ms + kDoubtMs;
      const bool ended_before =
          !witnessed->ends.empty() && witnessed->ends.front()->boot_ms < fault.at_ms - kDoubtMs;
      if (started && !ended_before) return true;
    }
    return false;
  }

  void read_witness() {
    for (const WitnessLine& line : e_.witness.lines) {
      Witnessed& witnessed = witnessed_[line.pod];
      (line.end ? witnessed.ends : witnessed.starts).push_back(&line);
      if (line.end) ++out_.witnessed;
    }
    for (const auto& [pod, witnessed] : witnessed_) {
      once(witnessed.starts, "started");
      once(witnessed.ends, "ended");
      if (witnessed.starts.empty())
        out_.doubts.push_back(show(pod) + " has an end and no start in the witness files");
    }
  }

  void once(const std::vector<const WitnessLine*>& lines, const char* what) {
    if (lines.size() < 2) return;
    std::string text = std::string(what) + " " + plural(lines.size(), "time");
    for (const WitnessLine* line : lines) text += "; " + show(*line);
    add(Promise::counted_once, std::move(text));
  }

  void read_history() {
    for (const CountedAttempt& row : e_.attempts) {
      if (!rows_.emplace(row.pod, &row).second)
        add(Promise::counted_once, "in the history more than once: " + show(row));
      const auto witnessed = witnessed_.find(row.pod);
      const Witnessed* lines = witnessed == witnessed_.end() ? nullptr : &witnessed->second;
      if (lines != nullptr && excused(*lines)) continue;
      if (row.disruption.empty()) {
        ++out_.counted;
        if (lines == nullptr || lines->ends.empty())
          add(lines != nullptr && row.code > kSignalled ? Promise::outlives_managers
                                                        : Promise::nothing_invented,
              "no witness of its end: " + show(row));
        continue;
      }
      disturbances_[row.pod] = Disturbance::disrupted;
      ++out_.disturbed;
      if (explained(row.node, lines)) continue;
      if (lines != nullptr && !lines->ends.empty())
        add(Promise::nothing_lost, "ended by itself, but: " + show(row));
      else
        add(Promise::outlives_managers, "ended without a fault of its node: " + show(row));
    }
  }

  // Numbers missing from the history are attempts that their node returned unstarted: no witness
  // saw them run, and they count nowhere.
  void find_returned() {
    for (const auto& [pod, row] : rows_)
      for (PodKey before{pod.index, 0}; before < pod; ++before.attempt)
        if (!rows_.contains(before) && !witnessed_.contains(before))
          disturbances_[before] = Disturbance::returned;
  }

  void compare_ends() {
    for (const auto& [pod, witnessed] : witnessed_) {
      if (excused(witnessed)) {
        ++out_.excused;
        continue;
      }
      const auto found = rows_.find(pod);
      if (found == rows_.end()) {
        if (!e_.reachable) continue;
        const WitnessLine& line =
            witnessed.ends.empty() ? *witnessed.starts.front() : *witnessed.ends.front();
        add(Promise::nothing_lost, "not in the history: " + show(line));
        continue;
      }
      const CountedAttempt& row = *found->second;
      if (witnessed.ends.empty()) continue;  // judged in read_history()
      const WitnessLine& end = *witnessed.ends.front();
      if (row.disruption.empty() && row.code != end.code)
        add(Promise::nothing_lost,
            "exit code " + std::to_string(end.code) + " became: " + show(row));
      if (!witnessed.starts.empty() && witnessed.starts.front()->uid != row.uid)
        add(Promise::counted_once,
            "another pod of the same number: " + show(*witnessed.starts.front()) +
                ", in the history " + row.uid);
    }
  }

  bool node_was_lost(PodKey pod) const {
    const auto row = rows_.find(pod);
    return row != rows_.end() && row->second->disruption == kNodeLost &&
           explained(row->second->node, nullptr);
  }

  // No attempt of an index may begin while another lives, or after one has succeeded.
  void check_order() {
    for (auto first = witnessed_.begin(); first != witnessed_.end();) {
      auto last = first;
      while (last != witnessed_.end() && last->first.index == first->first.index) ++last;
      for (auto a = first; a != last; ++a)
        for (auto b = first; b != last; ++b)
          if (a != b && !a->second.starts.empty() && !b->second.starts.empty()) check_pair(*a, *b);
      first = last;
    }
  }

  // Checks whether b began while a lived, or after a had succeeded.
  void check_pair(const std::pair<const PodKey, Witnessed>& a,
                  const std::pair<const PodKey, Witnessed>& b) {
    const WitnessLine& start = *a.second.starts.front();
    const WitnessLine& next = *b.second.starts.front();
    if (!before(start, next) || excused(a.second) || node_was_lost(a.first)) return;
    const bool ended = !a.second.ends.empty();
    const auto row = rows_.find(a.first);
    const bool killed = row != rows_.end() && row->second->code > kSignalled;
    const bool disturbed = disturbances_.contains(a.first) || (!ended && killed);
    const bool alive = ended ? before(next, *a.second.ends.front()) : !disturbed;
    if (alive)
      add(Promise::one_live,
          show(next) + ", while " + show(start) +
              (ended ? ", and ended at " + std::to_string(a.second.ends.front()->boot_ms) + " ms"
                     : " and has no end"));
    else if (ended && a.second.ends.front()->code == 0 && !disturbed)
      add(Promise::stays_succeeded, show(next) + ", after " + show(*a.second.ends.front()));
  }

  void predict() {
    out_.expected = forecast(e_.canary, e_.gap ? Disturbances{} : disturbances_);
    const Forecast& expected = out_.expected;
    const Shown& shown = e_.shown;
    const auto differ = [this](const std::string& what, const std::string& is,
                               const std::string& should) {
      if (is != should)
        add(Promise::as_predicted, what + ": " + (is.empty() ? "none" : is) + ", predicted " +
                                       (should.empty() ? "none" : should));
    };
    differ("condition", shown.condition, expected.condition);
    differ("succeeded indexes", shown.succeeded.text(), expected.succeeded.text());
    differ("failed indexes", shown.failed.text(), expected.failed.text());
    if (e_.gap) return;  // after a restore, attempt numbers continue above a gap
    differ("failed pods", std::to_string(shown.failed_pods), std::to_string(expected.failed_pods));
    for (const auto& [pod, attempt] : expected.attempts) {
      const auto row = rows_.find(pod);
      if (row == rows_.end()) {
        if (!attempt.counted.empty())
          add(Promise::as_predicted,
              show(pod) + ": predicted as " + attempt.counted + ", not in the history");
        continue;
      }
      differ(show(pod), row->second->counted, attempt.counted);
      check_backoff(pod, attempt.delay_ms);
    }
    for (const auto& [pod, row] : rows_)
      if (!expected.attempts.contains(pod))
        add(Promise::as_predicted, "not predicted: " + show(*row));
  }

  void check_backoff(PodKey pod, Millis delay_ms) {
    if (pod.attempt == 0 || delay_ms == 0) return;
    const auto now = witnessed_.find(pod), last = witnessed_.find({pod.index, pod.attempt - 1});
    if (now == witnessed_.end() || last == witnessed_.end() || now->second.starts.empty() ||
        last->second.ends.empty() || disturbances_.contains(last->first))
      return;
    const WitnessLine& end = *last->second.ends.front();
    const WitnessLine& start = *now->second.starts.front();
    if (end.boot != start.boot) return;
    const Millis waited = start.boot_ms - end.boot_ms;
    out_.backoff_late_ms = std::max(out_.backoff_late_ms, waited - delay_ms);
    if (waited < delay_ms - kBackoffTolerance)
      add(Promise::backoff_kept, show(start) + ", " + std::to_string(waited) + " ms after " +
                                     show(end) + "; its backoff is " + std::to_string(delay_ms) +
                                     " ms");
  }

  void check_logs() {
    for (const Log& log : e_.logs) {
      const auto witnessed = witnessed_.find(log.pod);
      if (witnessed == witnessed_.end() || witnessed->second.starts.empty()) continue;
      const std::string begin = begin_text(log.pod, witnessed->second.starts.front()->uid);
      const std::string whole = begin + end_text(log.pod, work_of(e_.canary, log.pod).code);
      ++out_.logs;
      // A killed attempt may have printed any part of it.
      const bool good =
          witnessed->second.ends.empty() ? whole.starts_with(log.text) : log.text == whole;
      if (!good)
        add(Promise::logs_complete, show(log.pod) + ": " + std::to_string(log.text.size()) +
                                        " bytes, printed " + std::to_string(whole.size()));
    }
    for (const std::string& one : e_.unread_logs) add(Promise::logs_complete, one);
  }

  void conclude() {
    struct Words {
      const char *one, *many, *what;
    };
    static constexpr Words kWords[kPromises] = {
        {"termination", "terminations", "not counted as what the witness saw"},
        {"attempt", "attempts", "started or counted more than once"},
        {"termination", "terminations", "counted without a witness"},
        {"index", "indexes", "ran again after a success"},
        {"index", "indexes", "with two live pods"},
        {"pod", "pods", "died with a manager"},
        {"status", "statuses", "taken back"},
        {"submission", "submissions", "accepted and then forgotten"},
        {"difference", "differences", "from the prediction"},
        {"retry", "retries", "before the backoff had passed"},
        {"log", "logs", "incomplete"},
        {"inconsistency", "inconsistencies", "found by the coordinator's own recount"},
        {"answer", "answers", "by a coordinator after another one had taken over"},
    };
    for (auto& [promise, facts] : facts_) {
      const Words& words = kWords[static_cast<int>(promise)];
      Finding finding{promise, facts.size(), "", {}};
      finding.text = std::to_string(facts.size()) + " " +
                     (facts.size() == 1 ? words.one : words.many) + " " + words.what;
      if (facts.size() > kFactsMax) facts.resize(kFactsMax);
      finding.facts = std::move(facts);
      out_.findings.push_back(std::move(finding));
    }
    const auto idle = static_cast<size_t>(
        std::count_if(e_.faults.begin(), e_.faults.end(),
                      [](const Injected& fault) { return fault.in_flight == 0; }));
    if (e_.faults.empty()) out_.doubts.push_back("no fault was injected");
    for (const Injected& fault : e_.faults)
      if (!fault.absent.empty()) out_.doubts.push_back(fault.absent);
    for (const Injected& fault : e_.faults)
      if (!fault.confirmed)
        out_.doubts.push_back(std::string(name(fault.fault)) +
                              " was not confirmed: " + fault.proof);
    if (idle == e_.faults.size() && idle > 0)
      out_.doubts.push_back("no attempt was running when a fault hit; use a larger --canary");
    if (e_.witness.unreadable > 0)
      out_.doubts.push_back(plural(e_.witness.unreadable, "line") +
                            " of the witness files cannot be read");
    if (out_.witnessed == 0) out_.doubts.push_back("the witnesses wrote nothing");
    if (e_.reads == 0) out_.doubts.push_back("the status of the canary was never read");
    if (!e_.reachable) out_.doubts.push_back("the coordinator did not answer at the end");
    out_.doubts.insert(out_.doubts.end(), e_.doubts.begin(), e_.doubts.end());
    out_.verdict = !out_.findings.empty() ? Verdict::broken
                   : out_.doubts.empty()  ? Verdict::held
                                          : Verdict::inconclusive;
  }

  const Evidence& e_;
  Judgement out_;
  std::map<PodKey, Witnessed> witnessed_;
  std::map<PodKey, const CountedAttempt*> rows_;
  Disturbances disturbances_;
  std::map<Promise, std::vector<std::string>> facts_;
};

}  // namespace

const char* name(Verdict verdict) {
  switch (verdict) {
    case Verdict::held:
      return "HELD";
    case Verdict::broken:
      return "BROKEN";
    case Verdict::inconclusive:
      return "INCONCLUSIVE";
  }
  return "";
}

const char* name(Promise promise) {
  static constexpr const char* kNames[kPromises] = {
      "lost",      "twice",  "invented", "resurrected", "two live", "outlived",   "went back",
      "forgotten", "result", "backoff",  "logs",        "recount",  "two leaders"};
  return kNames[static_cast<int>(promise)];
}

Judgement judge(const Evidence& evidence) {
  return Judge(evidence).run();
}

}  // namespace muster::cli::drill
