// Plants: faults that break a guarantee on purpose, each in one place of the simulated cluster.
//
// A passing simulation shows little unless its checks can fail: with each of these, some history
// must break a rule (storm_test.cpp). `none` leaves the product as it is.
#pragma once

#include <cstdint>

namespace muster::sim {

enum class Plant : uint8_t {
  none,
  // The coordinator's disk.
  sync_lies,          // a commit is answered, and lost in the next crash
  row_lost,           // a row of a commit is not written
  old_disk_unseen,    // agents do not report what they have seen, so an older copy is served
  job_not_recovered,  // a start overlooks a job
  // Answers to clients.
  created_early,  // a create is answered before it is on disk
  changed_early,  // an owner's change is answered, but dropped
  // Reports.
  acknowledged_early,  // a report is acknowledged when it arrives, and a crash loses it
  report_dropped,      // a report is acknowledged, but not read
  code_changed,        // a failure arrives as a success
  other_index,         // an end arrives for another index
  end_invented,        // an end arrives for a pod that still runs
  lie_believed,        // a lie arrives in the name of the node that has the pod
  // Orders.
  launched_elsewhere,  // a launch reaches another node too
  launch_lost,         // a launch is never delivered
  kill_lost,           // no kill is delivered
  end_list_lost,       // a registration's list of pods to end is not delivered
  // Agents and keepers.
  lease_ignored,     // the keeper starts pods after the lease has expired
  lease_endless,     // an agent without contact keeps starting pods
  started_twice,     // an order is executed twice
  spool_forgets,     // unacknowledged ends are gone after a restart of the agent
  queue_overflows,   // the keeper does not count its processes
  dies_with_agent,   // a restart of the agent ends its pods
  ran_unstarted,     // a process that ran is reported as never started
  running_unsaid,    // a registration omits a pod that runs
  running_invented,  // a registration claims a pod that does not run
  slots_forgotten,   // a registration offers fewer slots than there are
  // Time and leftovers.
  backoff_skipped,  // a job's clock runs fast
  lost_too_early,   // the coordinator's ticks run fast, so nodes that respond are declared lost
  actor_leaked,     // each job leaves an actor behind
  // Jobs that wait for others.
  dependency_forged,  // a held job is notified of an end that did not happen
  progress_forged,    // a job that follows another one is notified of successes that did not happen
  // Jobs with muster.dev/fence-after.
  fence_ignored,    // the keeper ends no pods for lack of contact
  fence_unawaited,  // pods are replaced before their keeper must have ended them
  // Users, queues and operators.
  drain_tolerated,     // a user's job is admitted as an operator's, whose tolerations count
  holdings_forgotten,  // a start does not count what pods hold
  limits_unrecovered,  // a start reads queues without their limits
  selector_kept,       // a queue keeps the node selector that it had first
  preempts_all,        // queues preempt pods of all others
  override_lost,       // a start overlooks overrides
  clock_late,          // the scheduler's wall clock is an hour behind, so it overlooks windows
  end_unsaid,          // a registration does not say when its node ends
  node_charged,        // pods that were lost with their keeper arrive as failed
  start_charged,    // pods that a node could not start arrive as commands that nobody can execute
  time_max_unread,  // queues are read without their longest time limit
  count,
};

inline constexpr const char* kPlantNames[] = {"none",
                                              "sync_lies",
                                              "row_lost",
                                              "old_disk_unseen",
                                              "job_not_recovered",

                                              "created_early",
                                              "changed_early",
                                              "acknowledged_early",
                                              "report_dropped",
                                              "code_changed",
                                              "other_index",
                                              "end_invented",
                                              "lie_believed",
                                              "launched_elsewhere",
                                              "launch_lost",
                                              "kill_lost",
                                              "end_list_lost",
                                              "lease_ignored",
                                              "lease_endless",
                                              "started_twice",
                                              "spool_forgets",
                                              "queue_overflows",
                                              "dies_with_agent",
                                              "ran_unstarted",
                                              "running_unsaid",
                                              "running_invented",
                                              "slots_forgotten",
                                              "backoff_skipped",
                                              "lost_too_early",
                                              "actor_leaked",
                                              "dependency_forged",
                                              "progress_forged",
                                              "fence_ignored",
                                              "fence_unawaited",
                                              "drain_tolerated",
                                              "holdings_forgotten",
                                              "limits_unrecovered",
                                              "selector_kept",
                                              "preempts_all",
                                              "override_lost",
                                              "clock_late",
                                              "end_unsaid",
                                              "node_charged",
                                              "start_charged",
                                              "time_max_unread"};
// The first of the faults that only histories of a site can show (Plan::site).
inline constexpr Plant kFirstOfSite = Plant::drain_tolerated;
static_assert(sizeof kPlantNames / sizeof *kPlantNames == static_cast<size_t>(Plant::count));

}  // namespace muster::sim
