// The grammar of the verbs for the coordinator's state: backup, restore, verify.
#include "cli/line/parser.hpp"

namespace muster::cli {
namespace {

CLI::Option* add_data_dir(const Verb& verb, std::string& dir, const std::string& help) {
  return verb.app->add_option("--data-dir", dir, help)->type_name("D");
}

Verb add_backup(CLI::App& root) {
  auto o = std::make_shared<BackupOptions>();
  Verb verb =
      new_verb(root, "State", "backup", "Back up the coordinator's state, online or offline");
  verb.app->add_option("dir", o->dir, "New directory for the backup, on the coordinator's machine")
      ->type_name("DIR")
      ->required();
  add_data_dir(verb, o->data_dir,
               "Data directory that no coordinator is serving (default: ask the coordinator)");
  add_target(verb, "");
  verb.app->footer(
      "Examples:\n  muster backup /backup/muster-$(date +%F)\n"
      "  muster backup /backup/last --data-dir /var/lib/muster\n"
      "Every byte is read and checked; damaged state is not backed up.");
  verb.finish = [o](const Settings&, const Target& target) -> Judged {
    o->target = target;
    return *o;
  };
  return verb;
}

Verb add_restore(CLI::App& root) {
  auto o = std::make_shared<RestoreOptions>();
  Verb verb = new_verb(root, "State", "restore", "Create a data directory from a backup");
  verb.app->add_option("dir", o->dir, "Backup, or copy of a data directory")
      ->type_name("DIR")
      ->required();
  add_data_dir(verb, o->data_dir, "Directory to create; must be absent or empty")->required();
  verb.app->footer(
      "Example:\n  muster restore /backup/last --data-dir /var/lib/muster-new\n"
      "What happened after the backup is lost to it, so no number of that time is given again. "
      "Agents are\naccepted with what they hold; what they run and the backup does not know goes "
      "on "
      "and is listed as\ncondition UnknownPods of their node.");
  verb.configured = false;
  verb.finish = [o](const Settings&, const Target&) -> Judged { return *o; };
  return verb;
}

Verb add_verify(CLI::App& root) {
  auto o = std::make_shared<VerifyOptions>();
  Verb verb =
      new_verb(root, "State", "verify", "Verify the coordinator's state by recounting every job");
  add_data_dir(
      verb, o->data_dir,
      "Data directory that no coordinator is serving, or a backup (default: ask the coordinator)");
  add_target(verb, "");
  verb.app->footer(
      "Examples:\n  muster verify\n  muster verify --data-dir /backup/last\n"
      "Exit code 0: sound; 1: it is not, with a line for each thing that does not fit.");
  verb.finish = [o](const Settings&, const Target& target) -> Judged {
    o->target = target;
    return *o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> state_verbs(CLI::App& root) {
  return {add_backup(root), add_restore(root), add_verify(root)};
}

}  // namespace muster::cli
