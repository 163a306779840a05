// muster restore: creates a new data-dir from a backup.
#include "cli/verbs/verb.hpp"
#include "client/terminal/exit_codes.hpp"
#include "coordinator/offline.hpp"

#include <iostream>

namespace muster::cli {

struct RestoreOptions {
  std::string dir;
  std::string data_dir;
};

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
               "UnknownPods of their node;\n"
               "  muster node end-unknown NODE ends them.\n"
            << (done->taken_over.empty()
                    ? ""
                    : "  " + done->taken_over +
                          " is marked as taken over: no coordinator starts there\n")
            << "  start:   muster coordinator --data-dir " << options.data_dir << "\n";
  return kDone;
}

Verb restore_verb() {
  auto o = std::make_shared<RestoreOptions>();
  return {
      .title = {"State", "restore", "Create a data directory from a backup"},
      .rows = {{"dir", "DIR", "Backup, or copy of a data directory", &o->dir, kAnything, kRequired},
               {"--data-dir", "D", "Directory to create; must be absent or empty", &o->data_dir,
                kAnything, kRequired}},
      .footer =
          "Example:\n  muster restore /backup/last --data-dir /var/lib/muster-new\n"
          "What happened after the backup is lost; numbers issued since then are not reused.\nPods "
          "started after the backup keep running and are listed in the condition "
          "UnknownPods of their node.\nTo end them: muster node end-unknown NODE",
      .configured = false,
      .finish = as_given(o)};
}

}  // namespace muster::cli
