// muster suspend, resume, scale, throttle, cordon, uncordon: one merge patch each. Repeating a
// change is not an error.
#include "cli/verbs/jobs/change.hpp"

#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/spec/fields/annotations.hpp"

#include <charconv>
#include <iostream>

namespace muster::cli {
namespace {

using What = ChangeOptions::What;

// A Job is scaled by its parallelism; --completions also sets the parallelism, so that all indexes
// still run at once.
Json scale_patch(const ChangeOptions& options) {
  Json spec;
  if (options.completions) {
    spec["completions"] = *options.completions;
    spec["parallelism"] = *options.completions;
  }
  if (options.parallelism) spec["parallelism"] = *options.parallelism;
  return {{"spec", spec}};
}

Json patch_of(const ChangeOptions& options) {
  switch (options.what) {
    case What::suspend:
      return {{"spec", {{"suspend", true}}}};
    case What::resume:
      return {{"spec", {{"suspend", false}}}};
    case What::scale:
      return scale_patch(options);
    case What::throttle:
      return {{"metadata", {{"annotations", {{std::string(core::kScaleDownKey), "finish"}}}}},
              {"spec", {{"parallelism", *options.parallelism}}}};
    case What::cordon:
      return cordon_patch(options.reason);
    case What::uncordon:
      return {{"spec", {{"unschedulable", nullptr}}}};
  }
  return {};
}

const char* done_word(const ChangeOptions& options) {
  const What what = options.what;
  if (options.cron && what == What::suspend) return "suspended: it starts no jobs";
  switch (what) {
    case What::suspend:
      return "suspended: its pods are terminated and not counted";
    case What::resume:
      return "resumed";
    case What::scale:
      return "scaled";
    case What::throttle:
      return "throttled: running pods continue";
    case What::cordon:
      return "cordoned: it gets no new pods";
    case What::uncordon:
      return "uncordoned";
  }
  return "";
}

// Jobs or, where a change can be made to them, cron jobs: cronjob/NAME...
std::optional<Usage> read_names(const std::vector<std::string>& what, ChangeOptions& o) {
  const std::string& first = what.front();
  const bool can = o.what == What::suspend || o.what == What::resume;
  const bool alone = what.size() > 1 && parse_kind(first) == Kind::cron_job;
  const size_t first_slash = first.find('/');
  if (!can || (!alone && (first_slash == std::string::npos ||
                          parse_kind(first.substr(0, first_slash)) != Kind::cron_job)))
    return read_job_names(what, o.names);
  o.cron = true;
  for (size_t i = alone ? 1 : 0; i < what.size(); ++i) {
    const size_t slash = what[i].find('/');
    const bool named = slash != std::string::npos;
    const std::string name = what[i].substr(named ? slash + 1 : 0);
    if (name.empty() || named == alone ||
        (named && parse_kind(what[i].substr(0, slash)) != Kind::cron_job))
      return Usage{"`" + what[i] + "`: must be cronjob/NAME like the first"};
    o.names.push_back(name);
  }
  return std::nullopt;
}

using ChangeWords = Raw<ChangeOptions, std::vector<std::string>>;

Verb change_of_jobs(What change, const char* name, const char* help, const std::string& example) {
  auto w = std::make_shared<ChangeWords>();
  w->o.what = change;
  const bool crons = change == What::suspend || change == What::resume;
  FlagRows rows = {
      {"what", "job/NAME...",
       std::string("Jobs, as job/NAME or NAME") + (crons ? "; or cron jobs, as cronjob/NAME" : ""),
       &w->what, kAnything, kRequired}};
  if (change == What::scale)
    rows.insert(rows.end(),
                {{"--completions", "N",
                  "Number of indexes of an elastic job; sets parallelism to the same value",
                  &w->o.completions, whole(0, kNumberMax)},
                 {"--parallelism,--replicas", "N", "Maximum pods running at once",
                  &w->o.parallelism, whole(0, kNumberMax)}});
  return {.title = {"Jobs", name, help},
          .rows = std::move(rows),
          .asks = {&w->o.target},
          .footer = "Example:\n  " + example,
          .finish = [w](const Given&) -> Judged {
            if (w->o.what == What::scale && !w->o.completions && !w->o.parallelism)
              return Usage{"scale to what? --completions N or --parallelism N"};
            return judged(read_names(w->what, w->o), w->o);
          }};
}

// Takes the last word, the number of pods.
std::optional<Usage> read_throttle(ChangeWords& w) {
  const std::string text = w.what.back();
  int32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number < 1)
    return Usage{
        "throttle to what? `" + text +
        "`: must be a number, 1 or more, after the jobs; to start nothing, use muster hold"};
  constexpr int32_t kMost = 100'000;  // spec.parallelism of an Indexed job
  if (number > kMost)
    return Usage{"throttle to what? `" + text + "`: must be at most " + std::to_string(kMost)};
  w.o.parallelism = number;
  w.what.pop_back();
  if (w.what.empty()) return Usage{"throttle what? job/NAME before the number"};
  return std::nullopt;
}

Verb change_of_nodes(What change, const char* name, const char* help, const std::string& example) {
  auto w = std::make_shared<ChangeWords>();
  w->o.what = change;
  FlagRows rows = {{"what", "NODE...", "Nodes, by name", &w->what, kAnything, kRequired}};
  if (change == What::cordon) rows.push_back(reason_row(w->o.reason));
  return {.title = {"Nodes", name, help},
          .rows = std::move(rows),
          .asks = {&w->o.target, ""},
          .footer = "Example:\n  " + example,
          .finish = [w](const Given&) -> Judged {
            for (const std::string& word : w->what) w->o.names.push_back(node_name(word));
            return judged(check_reason(w->o.reason), w->o);
          }};
}

}  // namespace

int execute(const ChangeOptions& options) {
  const auto client = connect(options.target);
  const bool node = options.what == What::cordon || options.what == What::uncordon;
  const Kind kind = node ? Kind::node : options.cron ? Kind::cron_job : Kind::job;
  int code = kDone;
  for (const std::string& name : options.names) {
    auto changed =
        change_object(*client, object_path(kind, options.target.ns, name), patch_of(options));
    if (!changed) {
      code = fail(changed.error());
      if (options.completions && changed.error().code == Errc::invalid)
        std::cerr << "  completions can be changed only for Indexed jobs;\n"
                     "  try: muster scale job/"
                  << name << " --parallelism N\n";
      if (code == kUnreachable) return code;
      continue;
    }
    std::cout << kind_name(kind) << "/" << name << " " << done_word(options) << std::endl;
  }
  return code;
}

Verb suspend_verb() {
  return change_of_jobs(What::suspend, "suspend",
                        "Suspend a job: terminate its pods without counting them as failed",
                        "muster suspend job/sweep");
}

Verb resume_verb() {
  return change_of_jobs(What::resume, "resume", "Resume a suspended job",
                        "muster resume job/sweep");
}

Verb scale_verb() {
  return change_of_jobs(What::scale, "scale",
                        "Set the number of indexes of a job, or how many run at once",
                        "muster scale job/sweep --completions 200");
}

Verb throttle_verb() {
  auto w = std::make_shared<ChangeWords>();
  w->o.what = What::throttle;
  return {.title = {"Jobs", "throttle", "Set how many pods of a job run at once, and end none"},
          .rows = {{"what", "job/NAME... N", "Jobs, as job/NAME or NAME, and how many pods of each",
                    &w->what, kAnything, kRequired}},
          .asks = {&w->o.target},
          .footer =
              "Pods that run go on, and no new ones start while N or more do.\n"
              "Example:\n  muster throttle job/sweep 2",
          .finish = [w](const Given&) -> Judged {
            if (auto wrong = read_throttle(*w)) return *wrong;
            return judged(read_job_names(w->what, w->o.names), w->o);
          }};
}

Verb cordon_verb() {
  return change_of_nodes(What::cordon, "cordon", "Mark a node unschedulable",
                         "muster cordon node-a --reason 'replace DIMM'");
}

Verb uncordon_verb() {
  return change_of_nodes(What::uncordon, "uncordon", "Mark a node schedulable",
                         "muster uncordon node-a");
}

}  // namespace muster::cli
