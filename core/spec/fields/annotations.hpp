// muster's own annotations on a Job: backoff, restart delay, gangs, placement, MPI, failed starts,
// inputs, fencing, and which indexes run. Dependencies are in after.hpp, niceness, umask and limits
// in process_settings.hpp.
//
// Admission validates them; reading ignores malformed values, so a stored job can always be read.
// An unknown key causes only a warning, since a later version may have written it.
#pragma once

#include "core/index_set.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/fields/mpi.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

constexpr std::string_view kBackoffBaseKey = "muster.dev/backoff-base";
constexpr std::string_view kBackoffMaxKey = "muster.dev/backoff-max";
constexpr std::string_view kRestartDelayKey = "muster.dev/restart-delay";
constexpr std::string_view kGangKey = "muster.dev/gang";
// "gang": when a pod of a gang fails, all pods are restarted together (GangRules). "pod", the
// default: each pod is replaced alone.
constexpr int32_t kGangMax = 10'000;  // pods, which are created and placed at once
constexpr std::string_view kRestartKey = "muster.dev/restart";
// The queue that the job is in (core/queue/queue.hpp).
constexpr std::string_view kQueueKey = "muster.dev/queue";
// "pack" or "spread": over as few nodes as possible, or over as many (arrangement.hpp).
constexpr std::string_view kPlacementKey = "muster.dev/placement";
// "FailJob": a pod whose command cannot be started fails the job; for commands typed by hand.
constexpr std::string_view kStartFailureKey = "muster.dev/start-failure";
// How many disruptions of an index (DisruptionTarget) its podFailurePolicy ignores; further ones
// count. Without it, as in Kubernetes, any number. Needs backoffLimitPerIndex, which counts per
// index.
constexpr std::string_view kDisruptionsMaxKey = "muster.dev/disruptions-max";
// More memory and longer time limits for the next attempts of an index that ran out of them, in
// ascending order ("8Gi,16Gi", "2h,8h"); core/spec/rules/retry_steps.hpp.
constexpr std::string_view kRetryMemoryKey = "muster.dev/retry-memory";
constexpr std::string_view kRetryTimeKey = "muster.dev/retry-time";
// No pods are created before this instant, as RFC 3339 writes it ("2027-01-31T08:00:00+01:00"). It
// may be changed or removed until the job has started (core/spec/rules/begin.hpp).
constexpr std::string_view kBeginKey = "muster.dev/begin";
// "true": the job is created on hold, which its owner may release like one of their own. It has no
// effect later.
constexpr std::string_view kHoldKey = "muster.dev/hold";
// "yield": an index that waits for a retry gives up its place among `parallelism`, so that others
// run meanwhile. "hold", the default, is Kubernetes' rule.
constexpr std::string_view kBackoffKey = "muster.dev/backoff";
// "finish": a lower `parallelism` ends no pod that has a node; new ones are created once fewer are
// active. "end", the default, is Kubernetes' rule. A gang is scaled by that in any case.
constexpr std::string_view kScaleDownKey = "muster.dev/scale-down";
// How long the job's pods may run on a node that has no contact with the coordinator. Then their
// keeper ends them, and only after that are they replaced (ADR 35).
constexpr std::string_view kFenceAfterKey = "muster.dev/fence-after";
constexpr Millis kFenceAfterMin = 15'000;  // three heartbeats (core/cluster/nodes/lease.hpp)
constexpr Millis kFenceAfterMax = 24 * 3'600'000;
// The only indexes of the job that run ("3,7-9"); used for rounds.
constexpr std::string_view kIndexesKey = "muster.dev/indexes";

// Of a round: the first job of its rounds, and its number among them.
constexpr std::string_view kRetryOfKey = "muster.dev/retry-of";
constexpr std::string_view kRoundKey = "muster.dev/round";

// Who is told when the job has finished, and how: addresses to mail to (core/spec/values/mail.hpp),
// and a command line of sh that runs as a job of the same owner.
constexpr std::string_view kMailKey = "muster.dev/mail";
constexpr std::string_view kNotifyKey = "muster.dev/notify";
constexpr size_t kNotifyMax = 4096;  // bytes
// "fail": only if the job fails. "end", the default: in any case.
constexpr std::string_view kNotifyOnKey = "muster.dev/notify-on";
// When that was done; set by the coordinator.
constexpr std::string_view kNotifiedKey = "muster.dev/notified";

constexpr std::string_view kOwnPrefix = "muster.dev/";

// What follows kOwnPrefix in each of these keys and in those of the job's owner (owner.hpp).
std::vector<std::string> known_annotations();

enum class PlacementChoice : uint8_t {
  usual,   // as the coordinator's --placement says
  pack,    // as few nodes as possible
  spread,  // as evenly as possible
};

struct JobAnnotations {
  std::optional<Millis> backoff_base_ms;  // absent: the coordinator's
  std::optional<Millis> backoff_max_ms;
  Millis restart_delay_ms = 10'000;
  bool gang = false;          // an MPI job is one unless it says otherwise
  bool restart_gang = false;  // only for a gang
  PlacementChoice placement = PlacementChoice::usual;
  bool start_failure_fails_job = false;
  bool backoff_yields = false;
  bool surplus_finishes = false;
  std::optional<Millis> fence_after_ms;
  bool private_tmp = false;
  std::optional<IndexSet> indexes;  // absent: all
  std::optional<MpiOptions> mpi;
};

// Who wants to know of the job's end.
struct NoticeWishes {
  std::vector<std::string> mail;
  std::string command;
  bool only_failures = false;
  bool any() const { return !mail.empty() || !command.empty(); }
};
NoticeWishes notice_wishes(const StringMap& annotations);

JobAnnotations read_annotations(const StringMap& annotations);
// Reads just this annotation, which is needed at each failed start.
bool start_failure_fails_job(const StringMap& annotations);
// Likewise, at each disruption that an Ignore rule matches. Absent: no maximum.
std::optional<int32_t> disruptions_max(const StringMap& annotations);

void validate_annotations(const StringMap& annotations, Violations& found);
// muster.dev/notify-on needs something to be told.
void validate_notice(const StringMap& annotations, Violations& found);
// muster.dev/mpi requires an Indexed job.
void validate_mpi(const StringMap& annotations, const JobSpec& spec, Violations& found);
// A gang is created and placed at once, so it has at most kGangMax pods.
void validate_gang(const StringMap& annotations, const JobSpec& spec, Violations& found);
// A job that follows others index by index (muster.dev/after: each:JOB) has indexes, and they can
// start one by one.
void validate_each(const StringMap& annotations, const JobSpec& spec, Violations& found);
// muster.dev/restart: gang requires an Indexed job that is a gang.
void validate_restart(const StringMap& annotations, const JobSpec& spec, Violations& found);
// muster.dev/disruptions-max requires backoffLimitPerIndex.
void validate_disruptions_max(const StringMap& annotations, const JobSpec& spec, Violations& found);
// muster.dev/indexes must be a non-empty set below the completions of an Indexed job.
void validate_indexes(const StringMap& annotations, const JobSpec& spec, Violations& found);
// muster.dev/inputs must have a line for each index of an Indexed job; muster.dev/inputs-file, used
// in its place, must be an absolute path.
void validate_inputs(const StringMap& annotations, const JobSpec& spec, Violations& found);

}  // namespace muster::core
