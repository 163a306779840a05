// muster journal: shows what a data-dir or a backup contains, as a summary or as lines of JSON.
#include "cli/verbs/verb.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "coordinator/journal_lines.hpp"

#include <cstdint>
#include <iostream>
#include <map>
#include <string>

namespace muster::cli {

// journal inspect, journal export
struct JournalOptions {
  bool exports = false;
  std::string dir;
  Output output = Output::table;
};

namespace {

using coordinator::JournalSummary;

void print_json(const JournalSummary& s) {
  OrderedJson out = {
      {"clusterId", s.cluster_id}, {"format", s.format}, {"epoch", s.epoch}, {"commit", s.commit}};
  if (s.acknowledged) out["acknowledged"] = *s.acknowledged;
  if (s.pid) out["pid"] = *s.pid;
  out["files"] = s.files;
  out["bytes"] = s.bytes;
  out["jobs"] = {{"unfinished", s.unfinished}, {"finished", s.finished}};
  out["rows"] = s.rows;
  out["records"] = s.records;
  out["problems"] = s.problems;
  std::cout << dumped(out) << "\n";
}

void print_counts(const char* title, const std::map<std::string, uint64_t>& counts) {
  std::cout << title;
  const char* gap = "";
  for (const auto& [kind, count] : counts) {
    std::cout << gap << kind << " " << count;
    gap = ", ";
  }
  std::cout << (counts.empty() ? "none\n" : "\n");
}

void print_table(const JournalSummary& s) {
  std::cout << "Cluster:  " << (s.cluster_id.empty() ? "none yet" : s.cluster_id)
            << "\nFormat:   " << s.format << "\nEpoch:    " << s.epoch << "\nCommit:   " << s.commit
            << " (acknowledged: " << (s.acknowledged ? std::to_string(*s.acknowledged) : "unknown")
            << ")"
            << "\nOpen in:  " << (s.pid ? "process " + std::to_string(*s.pid) : "no process")
            << "\nSize:     " << (s.bytes + 1023) / 1024 << " KiB in " << s.files << " files"
            << "\nJobs:     " << s.unfinished << " unfinished, " << s.finished << " finished\n";
  print_counts("Rows:     ", s.rows);
  print_counts("Records:  ", s.records);
  std::cout << "Health:   " << (s.problems.empty() ? "every row can be read" : "NOT SOUND") << "\n";
  for (const std::string& problem : s.problems) std::cout << "  " << problem << "\n";
}

}  // namespace

int execute(const JournalOptions& options) {
  if (options.exports) {
    auto damaged = coordinator::export_journal(options.dir, [](const std::string& line) {
      std::cout << line << "\n";
      return std::cout.good();
    });
    if (!damaged.ok()) return fail(damaged.error());
    if (!std::cout.flush()) return fail(kFailed, "the export is not complete: cannot write it");
    return *damaged == 0 ? kDone
                         : fail(kFailed, std::to_string(*damaged) +
                                             " rows cannot be read; they have the kind damaged");
  }
  auto summary = coordinator::summarize_journal(options.dir);
  if (!summary.ok()) return fail(summary.error());
  if (options.output == Output::json)
    print_json(*summary);
  else
    print_table(*summary);
  return summary->problems.empty() ? kDone : kFailed;
}

Verb journal_verb() {
  auto w = std::make_shared<Raw<JournalOptions>>();
  return {
      .title = {"State", "journal", "Show what a data directory or a backup holds"},
      .rows = {{"what", "inspect|export",
                "inspect: summarize the directory; export: print each record as a line of JSON",
                &w->what, one_of({"inspect", "export"}), kRequired},
               {"dir", "DIR",
                "Data directory, also of a running coordinator, or a backup or copy of one",
                &w->o.dir, kAnything, kRequired},
               {"-o,--output", "FORM", "Form of inspect's summary:", &w->o.output,
                one_of({"table", "json"})}},
      .footer =
          "Examples:\n  muster journal inspect /var/lib/muster\n"
          "  muster journal export /var/lib/muster | jq 'select(.record == \"PodsEnded\")'\n"
          "Nothing is changed. Private keys and token hashes are omitted; job objects are printed "
          "in full.\n"
          "Exit codes: 0 all could be read, 1 some rows could not, or acknowledged data is "
          "missing.",
      .configured = false,
      .finish = [w](const Given&) -> Judged {
        w->o.exports = w->what == "export";
        if (w->o.exports && w->o.output == Output::json)
          return Usage{"--output is only for `muster journal inspect`; an export is JSON lines"};
        return w->o;
      }};
}

}  // namespace muster::cli
