// Judge: compares what the witnesses wrote, what the coordinator counts and shows, and what was
// predicted. Pure: evidence in, verdict out.
//
// HELD needs proof: every fault confirmed while the canary ran, the API watched, all witnesses
// read. Without it the verdict is INCONCLUSIVE, unless something is broken.
#pragma once

#include "cli/drill/forecast.hpp"
#include "cli/drill/scenario.hpp"
#include "cli/drill/witness.hpp"
#include "core/index_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli::drill {

enum class Verdict { held, broken, inconclusive };
const char* name(Verdict verdict);  // "HELD"

// What a drill checks, in the order in which reports list it.
enum class Promise {
  nothing_lost,       // every witnessed end is counted, as what it was
  counted_once,       // no end counts twice, no attempt is started twice
  nothing_invented,   // nothing is counted without a witness
  stays_succeeded,    // no index runs again after its success
  one_live,           // no index has two live pods
  outlives_managers,  // work survives the death of its managers
  never_back,         // no status that was shown goes back
  accepted_stays,     // whatever was answered with 201 exists
  as_predicted,       // the outcome is what core/ computes
  backoff_kept,       // no retry comes early
  logs_complete,      // what an attempt printed is in its log
  state_sound,        // the coordinator's own recount finds nothing
};
inline constexpr int kPromises = 1 + static_cast<int>(Promise::state_sound);
const char* name(Promise promise);  // "lost", "twice", …

// How far clocks and their rounding may be off.
constexpr Millis kBackoffTolerance = 50;
// An end this much older than a fault that ends pods may be lost with it: the process had written
// its line and was not reaped yet.
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
  std::string condition;  // "Complete", "Failed"; empty: it has not ended
};

struct Injected {
  Fault fault = Fault::coordinator_kill;
  std::string node;     // empty: of the coordinator
  Millis at_ms = 0;     // boot clock: the daemon it hit is gone or stopped
  Millis until_ms = 0;  // likewise: everything is back
  bool confirmed = false;
  std::string proof;                // or why it could not be confirmed
  uint32_t in_flight = 0;           // attempts of the canary that lived when it came
  std::optional<Millis> down_ms{};  // until the first answer of the API
  std::string absent{};             // which daemon has not come back; empty: all have
};

struct Log {
  PodKey pod;
  std::string text;
};

// A restore: what happened in between is not in the state that goes on.
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
  uint64_t logs_on_disk = 0;  // of `logs`: read on the node, as the API no longer serves them
  std::vector<std::string> unread_logs;
  std::vector<std::string> unsound;  // what the coordinator's recount found
  std::vector<std::string> doubts;   // anything else that makes a HELD worthless
  std::optional<Gap> gap{};
};

struct Finding {
  Promise promise;
  uint64_t count = 0;
  std::string text;                // "2 terminations counted that nobody witnessed"
  std::vector<std::string> facts;  // at most kFactsMax
};
constexpr size_t kFactsMax = 8;

struct Judgement {
  Verdict verdict = Verdict::inconclusive;
  std::vector<Finding> findings;    // what is broken, by promise
  std::vector<std::string> doubts;  // why nothing is proven
  uint64_t witnessed = 0;           // ends according to the witnesses
  uint64_t counted = 0;             // ends by themselves according to the coordinator
  uint64_t disturbed = 0;           // attempts that faults ended
  uint64_t excused = 0;             // attempts between backup and restore, which are not compared
  uint64_t logs = 0;                // compared
  Millis backoff_late_ms = 0;       // the latest retry, beyond its delay
  Forecast expected;
};

Judgement judge(const Evidence& evidence);

}  // namespace muster::cli::drill
