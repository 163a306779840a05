// Restored: a job as it goes on from a backup.
//
// Between the backup and the restore the job went on, and nobody here knows how far. So nothing
// that was given then may be given again: attempts and numbers of pods begin above all that a job
// can have come to meanwhile.
#pragma once

#include "core/job/job.hpp"

namespace muster::core {

// Where attempts and numbers begin that are given after a restore at this instant: the seconds
// since 2020. An index gets a new attempt less often than once a second, so what was given between
// two restores of the same backup is below the second one's.
uint32_t restored_base(Millis now_ms);

// Pods that are on a node keep their names, since an agent may have them; those that wait for a
// node get new ones.
JobState restored(JobState state, bool indexed, uint32_t base);

}  // namespace muster::core
