// The grammar of the verbs for the coordinator's state: backup, restore, verify, journal.
#include "cli/grammar/parser.hpp"

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
      "All data is read and verified first; damaged state is not backed up.\n"
      "A backup holds the cluster's keys: nobody but root and the coordinator's user may be able "
      "to write to the directories on the way to it, and it must not be in the data directory.");
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
      "What happened after the backup is lost; numbers issued since then are not reused.\nPods "
      "started after the backup keep running and are listed in the condition "
      "UnknownPods of their node.");
  verb.configured = false;
  verb.finish = [o](const Settings&, const Target&) -> Judged { return *o; };
  return verb;
}

Verb add_verify(CLI::App& root) {
  auto o = std::make_shared<VerifyOptions>();
  Verb verb =
      new_verb(root, "State", "verify", "Verify the coordinator's state by recounting all jobs");
  add_data_dir(
      verb, o->data_dir,
      "Data directory that no coordinator is serving, or a backup (default: ask the coordinator)");
  add_target(verb, "");
  verb.app->footer(
      "Examples:\n  muster verify\n  muster verify --data-dir /backup/last\n"
      "Exit codes: 0 consistent, 1 inconsistent, with a line for each problem.");
  verb.finish = [o](const Settings&, const Target& target) -> Judged {
    o->target = target;
    return *o;
  };
  return verb;
}

struct JournalWords {
  std::string what, dir, output = "table";
};

Verb add_journal(CLI::App& root) {
  auto w = std::make_shared<JournalWords>();
  Verb verb = new_verb(root, "State", "journal", "Show what a data directory or a backup holds");
  verb.app->add_option("what", w->what, "summarize it, or print every record as a line of JSON")
      ->type_name("inspect | export")
      ->check(one_of({"inspect", "export"}))
      ->required();
  verb.app
      ->add_option("dir", w->dir,
                   "Data directory, also of a running coordinator, or a backup or copy of one")
      ->type_name("DIR")
      ->required();
  verb.app->add_option("-o,--output", w->output, "Form of inspect's summary: table or json")
      ->type_name("FORM")
      ->check(one_of({"table", "json"}));
  verb.app->footer(
      "Examples:\n  muster journal inspect /var/lib/muster\n"
      "  muster journal export /var/lib/muster | jq 'select(.record == \"PodsEnded\")'\n"
      "Nothing is changed. Private keys and token hashes are omitted; job objects are printed in "
      "full.\n"
      "Exit codes: 0 all could be read, 1 some rows could not, or acknowledged data is missing.");
  verb.configured = false;
  verb.finish = [w](const Settings&, const Target&) -> Judged {
    JournalOptions o;
    o.exports = w->what == "export";
    o.dir = w->dir;
    o.output = read_output(w->output);
    if (o.exports && o.output == Output::json)
      return Usage{"--output is only for `muster journal inspect`; an export is JSON lines"};
    return o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> state_verbs(CLI::App& root) {
  return {add_backup(root), add_restore(root), add_verify(root), add_journal(root)};
}

}  // namespace muster::cli
