// muster backup: copies the state so that it can be verified and restored; through the running
// coordinator, or from a data-dir by its files.
#include "cli/verbs/verb.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "coordinator/offline.hpp"

#include <filesystem>
#include <iostream>

namespace muster::cli {

struct BackupOptions {
  Target target;
  std::string dir;
  std::string data_dir;  // empty: through the coordinator
};

namespace {

void tell(const std::string& dir, uint64_t commit, uint64_t files, uint64_t bytes) {
  std::cout << "backup of commit " << commit << " in " << dir << ": " << files << " files, "
            << (bytes + 1023) / 1024 << " KiB\n  check:   muster verify --data-dir " << dir
            << "\n  restore: muster restore " << dir << " --data-dir NEW\n";
}

}  // namespace

int execute(const BackupOptions& options) {
  std::error_code ignored;
  const std::string dir =
      std::filesystem::absolute(options.dir, ignored).lexically_normal().string();
  if (!options.data_dir.empty()) {
    auto made = coordinator::back_up_data_dir(options.data_dir, dir);
    if (!made.ok()) return fail(made.error());
    tell(dir, made->commit, made->files, made->bytes);
    return kDone;
  }
  const auto client = connect(options.target);
  if (Status there = allow_long_answers(*client, options.target); !there)
    return fail(there.error());
  auto answer = client->post("/apis/muster.dev/v1/backups", dumped(Json{{"dir", dir}}));
  if (!answer) return fail(answer.error());
  if (!answer->ok()) return fail(refusal(*answer));
  const Json& made = answer->json;
  auto number = [&made](const char* name) {
    return static_cast<uint64_t>(number_at(made, {name}));
  };
  tell(dir, number("commit"), number("files"), number("bytes"));
  return kDone;
}

Verb backup_verb() {
  auto o = std::make_shared<BackupOptions>();
  return {
      .title = {"State", "backup", "Back up the coordinator's state, online or offline"},
      .rows =
          {{"dir", "DIR", "New directory for the backup, on the coordinator's machine", &o->dir,
            kAnything, kRequired},
           {"--data-dir", "D",
            "Data directory on this machine to copy by its files, whether its coordinator leads, "
            "follows or is stopped (default: ask the coordinator that leads)",
            &o->data_dir}},
      .asks = {&o->target, ""},
      .footer =
          "Examples:\n  muster backup /backup/muster-$(date +%F)\n"
          "  muster backup /backup/last --data-dir /var/lib/muster\n"
          "All data is read and verified first; damaged state is not backed up.\n"
          "A backup holds the cluster's keys: nobody but root and the coordinator's user may be "
          "able to write to the directories on the way to it, and it must not be in the data "
          "directory.",
      .finish = as_given(o)};
}

}  // namespace muster::cli
