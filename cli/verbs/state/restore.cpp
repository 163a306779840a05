// muster restore: creates a new data-dir from a backup.
#include "cli/verbs/verbs.hpp"
#include "client/terminal/exit_codes.hpp"
#include "coordinator/offline.hpp"

#include <iostream>

namespace muster::cli {

int execute(const RestoreOptions& options) {
  auto done = coordinator::restore_data_dir(options.dir, options.data_dir);
  if (!done.ok()) return fail(done.error());
  if (!done->checked)
    std::cerr << "muster: " << options.dir << " has no manifest: its files could not be verified\n";
  std::cout << options.data_dir << " continues from commit " << done->from.commit << " of epoch "
            << done->from.epoch << ", as epoch " << done->epoch << ", with " << done->jobs
            << " unfinished jobs\n"
            << "  It does not contain what was submitted, changed or finished after the backup.\n"
            << "  Pods started after the backup keep running and are listed in the condition "
               "UnknownPods of their node.\n"
            << (done->taken_over.empty()
                    ? ""
                    : "  " + done->taken_over +
                          " is marked as taken over: no coordinator starts there\n")
            << "  start:   muster coordinator --data-dir " << options.data_dir << "\n";
  return kDone;
}

}  // namespace muster::cli
