// Restored: a job that continues from a backup.
//
// The job continued after the backup, and how far is unknown. So that no attempt or pod number is
// assigned twice, new ones start above anything that the job can have reached by the restore.
#pragma once

#include "core/job/fold/job.hpp"

namespace muster::core {

// Where attempts and pod numbers start after a restore at this instant: the seconds since 2020. An
// index gets less than one new attempt per second, so whatever was assigned between two restores of
// one backup is below the second restore's base.
uint32_t restored_base(Millis now_ms);

// Pods bound to a node keep their keys, since an agent may know them; pods waiting for a node get
// new keys.
JobState restored(JobState state, bool indexed, uint32_t base);

}  // namespace muster::core
