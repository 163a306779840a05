// Judge: compares what the witnesses wrote, what the coordinator counts and shows, and what was
// predicted. Pure: evidence in, verdict out.
//
// HELD needs proof: every fault was confirmed while the canary ran, the API was watched, and all
// witnesses were read. Without it, the verdict is INCONCLUSIVE unless something is broken.
#pragma once

#include "core/index_set.hpp"
#include "drill/proof/forecast.hpp"
#include "drill/proof/scenario.hpp"
#include "drill/proof/witness.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli::drill {

enum class Verdict { held, broken, inconclusive };
const char* name(Verdict verdict);  // "HELD"

// What a drill checks, in the order of the report.
enum class Promise {
  nothing_lost,       // every witnessed end is counted as what it was
  counted_once,       // no end counts twice, no attempt starts twice
  nothing_invented,   // nothing is counted without a witness
  stays_succeeded,    // no index runs again after its success
  one_live,           // no index has two live pods
  outlives_managers,  // work survives the death of its managers
  never_back,         // no status that was shown is taken back
  accepted_stays,     // every job answered with 201 exists
  as_predicted,       // the outcome is what core/ computes
  backoff_kept,       // no retry comes early
  logs_complete,      // everything an attempt printed is in its log
  state_sound,        // the coordinator's own recount finds no discrepancy
  one_leads,          // no coordinator answers once another has taken over
};
inline constexpr int kPromises = 1 + static_cast<int>(Promise::one_leads);
const char* name(Promise promise);  // "lost", "twice", …

// Allows for inaccurate and rounded clocks.
constexpr Millis kBackoffTolerance = 50;
// A fault that ends pods may lose an end that was witnessed at most this long before it: the
// process had written its line but was not reaped yet.
constexpr Millis kDoubtMs = 1'500;

// An attempt in the coordinator's history.
struct CountedAttempt {
  PodKey pod;
  std::string pod_name, uid, node, cause, counted, disruption;
  int32_t code = 0;
};

// The final status of the canary.
struct Shown {
  core::IndexSet succeeded, failed;
  uint64_t failed_pods = 0;
  std::string condition;  // "Complete", "Failed"; empty: it has not finished
};

struct Injected {
  Fault fault = Fault::coordinator_kill;
  std::string node;     // empty: the coordinator
  Millis at_ms = 0;     // boot clock: the daemon it hit is gone or stopped
  Millis until_ms = 0;  // likewise: everything is back
  bool confirmed = false;
  std::string proof;                // or why it was not confirmed
  uint32_t in_flight = 0;           // attempts of the canary that were alive when it hit
  std::optional<Millis> down_ms{};  // until the API's first answer
  std::string absent{};             // the daemon that has not come back; empty: none
  // With several coordinators: likewise, until the first submission was accepted, and until an end
  // of a pod was counted; and what the one that led answered after another had begun to serve.
  std::optional<Millis> accepted_ms{}, counted_ms{};
  std::vector<std::string> answered_late{};
};

struct Log {
  PodKey pod;
  std::string text;
};

// A restore: what happened in between is not in the restored state.
struct Gap {
  Millis backup_ms = 0, restored_ms = 0;  // boot clock
};

struct Evidence {
  Canary canary;
  Testimony witness;
  std::vector<CountedAttempt> attempts;
  Shown shown;
  bool reachable = true;               // the job could be read at the end
  std::vector<std::string> went_back;  // "succeeded went from 12 to 11"
  uint64_t reads = 0;                  // of the job's status
  std::vector<Injected> faults;
  uint32_t accepted = 0;               // small submissions answered with 201
  std::vector<std::string> forgotten;  // of those
  std::vector<Log> logs;
  uint64_t logs_on_disk = 0;  // of `logs`: read on the node because the API no longer serves them
  std::vector<std::string> unread_logs;
  std::vector<std::string> unsound;  // what the coordinator's recount found
  std::vector<std::string> doubts;   // anything else that rules out HELD
  std::optional<Gap> gap{};
};

struct Finding {
  Promise promise;
  uint64_t count = 0;
  std::string text;                // "2 terminations counted without a witness"
  std::vector<std::string> facts;  // at most kFactsMax
};
constexpr size_t kFactsMax = 8;

struct Judgement {
  Verdict verdict = Verdict::inconclusive;
  std::vector<Finding> findings;    // what is broken, by promise
  std::vector<std::string> doubts;  // why nothing is proven
  uint64_t witnessed = 0;           // ends seen by the witnesses
  uint64_t counted = 0;             // ends not caused by faults, according to the coordinator
  uint64_t disturbed = 0;           // attempts that faults ended
  uint64_t excused = 0;             // attempts between backup and restore, not compared
  uint64_t logs = 0;                // compared
  Millis backoff_late_ms = 0;       // how late the latest retry was, beyond its delay
  Forecast expected;
};

Judgement judge(const Evidence& evidence);

}  // namespace muster::cli::drill
