// Restored: a job that continues from a backup.
//
// After the backup the job went on, and we do not know how far. So that no attempt or pod number is
// assigned twice, new ones begin above anything that the job can have reached by the restore.
#pragma once

#include "core/job/job.hpp"

namespace muster::core {

// Where attempts and pod numbers begin after a restore at this instant: the seconds since 2020. An
// index gets a new attempt less often than once a second, so whatever was assigned between two
// restores of one backup is below the second one's base.
uint32_t restored_base(Millis now_ms);

// Pods bound to a node keep their keys, since an agent may know them; pods that wait for a node get
// new ones.
JobState restored(JobState state, bool indexed, uint32_t base);

}  // namespace muster::core
