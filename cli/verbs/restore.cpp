// muster restore: creates a new data-dir from a backup.
#include "cli/output/exit_codes.hpp"
#include "cli/verbs/verbs.hpp"
#include "coordinator/offline.hpp"

#include <iostream>

namespace muster::cli {

int execute(const RestoreOptions& options) {
  auto done = coordinator::restore_data_dir(options.dir, options.data_dir);
  if (!done.ok()) return fail(done.error());
  if (!done->checked)
    std::cerr << "muster: " << options.dir
              << " has no manifest: its files could not be compared with what was written\n";
  std::cout << options.data_dir << " goes on from commit " << done->from.commit << " of epoch "
            << done->from.epoch << ", as epoch " << done->epoch << ": " << done->jobs
            << " jobs are not finished\n"
            << "  What was submitted, changed or finished after the backup is not known to it.\n"
            << "  Pods that agents still run and it does not know go on, and are listed as a "
               "condition of their node.\n"
            << "  start:   muster coordinator --data-dir " << options.data_dir << "\n";
  return kDone;
}

}  // namespace muster::cli
