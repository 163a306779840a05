// Plants: faults that break a guarantee on purpose, each in one place of the simulated cluster.
//
// A simulation that passes shows little unless its checks can fail: with each of these, some
// history must break a rule (storm_test.cpp). `none` is the product as it is.
#pragma once

#include <cstdint>

namespace muster::sim {

enum class Plant : uint8_t {
  none,
  // The coordinator's disk.
  sync_lies,          // a commit is answered, and lost in the next crash
  row_lost,           // a row of a commit is not written
  old_disk_unseen,    // agents do not say what they have seen, so an older copy is served
  job_not_recovered,  // a start overlooks a job
  // What clients are told.
  created_early,  // a create is answered before it is on disk
  changed_early,  // an owner's change is answered, and dropped
  // Reports.
  acknowledged_early,  // a report is acknowledged when it arrives, and a crash loses it
  report_dropped,      // it is acknowledged, and nobody reads it
  code_changed,        // a failure arrives as a success
  other_index,         // an end arrives as that of another index
  end_invented,        // the end of a pod that runs
  lie_believed,        // a lie arrives under the name of the node it is about
  // Orders.
  launched_elsewhere,  // a launch reaches another node too
  launch_lost,         // a launch is never delivered
  kill_lost,           // no kill is delivered
  end_list_lost,       // a registration's list of pods to end is not delivered
  // Agents and keepers.
  lease_ignored,     // the keeper starts what it should have dropped
  lease_endless,     // an agent that hears nothing goes on starting pods
  started_twice,     // an order is executed twice
  spool_forgets,     // ends that were not acknowledged are gone after a restart of the agent
  queue_overflows,   // the keeper does not count its processes
  dies_with_agent,   // a restart of the agent ends its pods
  ran_unstarted,     // a process that ran is reported as never started
  running_unsaid,    // a registration omits a pod that runs
  running_invented,  // a registration claims a pod that does not run
  slots_forgotten,   // a registration offers fewer slots than there are
  // Time, and what is left over.
  backoff_skipped,  // a job's clock runs fast
  lost_too_early,   // the coordinator's ticks run fast, so nodes that respond are declared lost
  actor_leaked,     // an actor stays behind for each job
  // Jobs that wait for others.
  dependency_forged,  // a held job is notified of an end that did not come
  // Jobs with muster.dev/fence-after.
  fence_ignored,    // the keeper ends nothing for want of contact
  fence_unawaited,  // pods are replaced before their keeper must have ended them
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
                                              "fence_ignored",
                                              "fence_unawaited"};
static_assert(sizeof kPlantNames / sizeof *kPlantNames == static_cast<size_t>(Plant::count));

}  // namespace muster::sim
