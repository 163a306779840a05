#include "cli/verbs/run/job_flags.hpp"

#include "base/text/nearest.hpp"
#include "cli/verbs/run/script_flags.hpp"
#include "cli/verbs/words.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/resources.hpp"
#include "client/settings/output_files.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

namespace muster::cli {
namespace {

constexpr const char* kValues = ":::";
constexpr int64_t kMaxFailsMax = 100'000;  // core/spec/rules/validation.cpp

// Adds rows that cannot be combined with a manifest.
void add_of_command(FlagRows& rows, JobWords& w, const FlagRows& more) {
  for (const FlagRow& row : more) {
    const std::string name = row.names.substr(row.names.find("--"));
    w.of_command.push_back(name.substr(0, name.find(',')));
    rows.push_back(row);
  }
}

// Flags whose values are checked by a function.
struct ResourceFlag {
  const char *name, *type, *help;
  Status (*read)(const std::string& text, ResourceWishes& into);
  bool repeats = false;
  const char* letter = "";  // with a comma: "-t,"
};
constexpr ResourceFlag kResourceFlags[] = {
    {"--cpus", "N",
     "CPUs that each index needs free on its node, such as 2 or 0.5; CMD gets them as "
     "OMP_NUM_THREADS, unless that is set, its relatives (MKL, OpenBLAS, NumExpr) and "
     "SLURM_CPUS_PER_TASK",
     read_cpus, false, "-c,"},
    {"--mem", "SIZE",
     "Memory for each index, such as 4Gi; both its request and its limit, with a warning where "
     "nothing enforces it",
     read_memory},
    {"--retry-mem", "SIZES",
     "Memory for the attempts after one that ran out of it, such as 8Gi,16Gi; each counts as no "
     "retry",
     read_retry_memory},
    {"--gpus", "N", "GPUs for each index, such as 1 or, of another kind, amd.com/gpu=1", read_gpus},
    {"--time", "T",
     "Time limit of each attempt, such as 90m, 1:30:00 or 2-12:00 (default: no limit)", read_time,
     false, "-t,"},
    {"--retry-time", "TIMES",
     "Time limits of the attempts after one that reached its limit, such as 2h,8h; each counts as "
     "no retry",
     read_retry_time},
    {"--signal", "SIG[@T]",
     "Signal for each index T before the limit of --time, such as USR1@2m (default: a minute); "
     "B:USR1@2m: for CMD itself, not for its descendants",
     read_signal},
    {"--grace", "T", "Time between SIGTERM and SIGKILL when an index is ended (default 30s)",
     read_grace},
    {"--node-selector", "LABEL=VALUE", "Only nodes with this label; repeatable", read_node_label,
     true},
    {"--after", "KIND:JOB",
     "Start once another job has ended: ok:JOB (successfully), notok:JOB (unsuccessfully) or "
     "any:JOB; or each index once that of JOB has succeeded: each:JOB; repeatable",
     read_after, true},
    {"--label", "NAME=VALUE", "Label of the job, for muster get jobs -l; repeatable", read_label,
     true},
    {"--ttl", "T",
     "Delete the job this long after it has finished, such as 7d (default: it is kept)", read_ttl},
};

void add_resource_rows(FlagRows& rows, JobWords& w) {
  for (const ResourceFlag& one : kResourceFlags)
    add_of_command(
        rows, w,
        {{std::string(one.letter) + one.name, one.type, one.help, &w.resources[one.name]}});
  ResourceWishes& wishes = w.o.resources;
  add_of_command(
      rows, w,
      {{"-p,--queue,--partition", "NAME",
        "Queue of the job (default default); muster queue lists them", &wishes.queue},
       {"--priority", "N", "Priority of the job; higher ones go first and may preempt lower ones",
        &wishes.priority, whole(-kNumberMax - 1, kNumberMax)},
       {"--scratch", "[SIZE]",
        "Scratch directory for each index, $MUSTER_SCRATCH, removed with it; SIZE such as 10Gi "
        "limits it",
        &wishes.scratch, kAnything, kOptional},
       {"--private-tmp", "", "Give each index its own /tmp and /var/tmp", &wishes.private_tmp},
       {"--nice", "N",
        "Add N, 0 to 19, to the niceness of CMD, so that other processes of its node go first",
        &wishes.nice, whole(0, core::kNiceMax)},
       {"--max-fails", "N",
        "End the job once more than N indexes have failed; 0: at the first (default: no limit)",
        &wishes.max_fails, whole(0, kMaxFailsMax)},
       {"--gang", "", "Start indexes together or not at all", &wishes.gang},
       {"--placement", "ORDER",
        "Nodes of the indexes; pack: as few as possible, spread: evenly over all (default: as the "
        "site places them)",
        &wishes.placement, one_of({"pack", "spread"})}});
}

void add_resource_rows_if(FlagRows& rows, JobWords& w,
                          const std::function<bool(std::string_view name)>& wanted) {
  FlagRows all;
  add_resource_rows(all, w);
  for (FlagRow& row : all)
    if (wanted(std::string_view(row.names).substr(row.names.find("--"))))
      rows.push_back(std::move(row));
}

// The flags that define the indexes of a command.
void add_index_rows(FlagRows& rows, JobWords& w) {
  EachWishes& each = w.o.each;
  rows.insert(
      rows.end(),
      {{"-n,--completions", "N", "Number of indexes to run (JOB_COMPLETION_INDEX is 0 to N-1)",
        &w.o.completions, whole(1, kNumberMax)},
       {"--each", "FILE",
        "Run CMD for each line of a file (- reads stdin); the line replaces {} in CMD and is in "
        "$MUSTER_INPUT; repeat the flag for all combinations",
        &each.files},
       {"-0,--null", "", "Inputs of --each are separated by null bytes instead of newlines",
        &each.null},
       {"--each-csv", "FILE",
        "Run CMD for each record of a CSV file with a header (- reads stdin); {NAME} or {1} is a "
        "column",
        &each.csv},
       {"-a,--array", "RANGES",
        "Run CMD for each number, as Slurm writes them: 1-100, 0-15:4 or 1,5,9-12, with %10 for at "
        "most 10 at once; the number replaces {} in CMD and is MUSTER_INPUT and "
        "SLURM_ARRAY_TASK_ID",
        &each.array},
       {"--commands", "FILE",
        "Run each line of a file (- reads stdin) as a command of sh, without CMD; blank lines and "
        "lines that start with # are skipped",
        &each.commands}});
  add_of_command(rows, w,
                 {{"-j,--parallelism", "P", "Maximum running at once (default: one per slot)",
                   &w.o.parallelism, whole(1, kNumberMax)}});
}

// The flag that says what the indexes are; empty: none does. `counted`: that of their number, or
// null.
std::variant<std::string, Usage> index_flag(const EachWishes& each, const char* counted) {
  std::vector<std::string> flags;
  if (counted) flags.emplace_back(counted);
  if (!each.array.empty()) flags.emplace_back("--array");
  if (!each.files.empty()) flags.emplace_back("--each");
  if (!each.csv.empty()) flags.emplace_back("--each-csv");
  if (!each.commands.empty()) flags.emplace_back("--commands");
  if (!each.values.empty()) flags.emplace_back(kValues);
  if (flags.size() > 1)
    return Usage{flags[0] + " and " + flags[1] +
                 " are mutually exclusive: each says what the indexes are"};
  if (std::count(each.files.begin(), each.files.end(), "-") > 1)
    return Usage{"--each - can be given only once: there is only one stdin"};
  if (each.null && each.files.empty()) return Usage{"-0 applies to --each FILE"};
  return flags.empty() ? "" : flags.front();
}

// What runs for each index: a script with its arguments, or a command.
std::optional<Usage> read_program(const std::string& verb, const std::string& flag, JobWords& w,
                                  const std::vector<std::string>& tail) {
  RunOptions& o = w.o;
  if (!o.file.empty())
    return Usage{(o.script ? o.script->name : flag) + " and -f are mutually exclusive: " +
                 (o.script ? "a script" : flag) + " runs a command, -f a manifest"};
  if (o.script && flag == "--commands")
    return Usage{"--commands and " + o.script->name +
                 " are mutually exclusive: the lines of the file are all that runs"};
  if (o.script) {
    o.command = tail;
    if (flag.empty()) o.completions = 1;
    return std::nullopt;
  }
  if (auto wrong = read_command(w.rest, tail, o.command)) return wrong;
  if (flag == "--commands") {
    if (o.command.empty()) return std::nullopt;
    return Usage{"--commands takes no command: its lines are what runs; use --each FILE -- " +
                 o.command.front() + " {}"};
  }
  if (o.command.empty())
    return Usage{flag + " needs a command: muster " + verb + " " +
                 (flag == "-N"        ? "--mpi auto -N 4 -- mpirun CMD ARG..."
                  : flag == "-n"      ? "-n 10 -- CMD ARG..."
                  : flag == "--array" ? "--array 1-100 -- CMD {}"
                  : flag == kValues   ? "CMD ::: A B C"
                                      : flag + " FILE -- CMD {}")};
  return std::nullopt;
}

// Takes values for the command from the end of its words: CMD ::: A B ::: C.
std::optional<Usage> take_values(std::vector<std::string>& command,
                                 std::vector<std::vector<std::string>>& values) {
  const auto first = std::ranges::find(command, kValues);
  for (auto at = first; at != command.end(); ++at)
    if (*at == kValues)
      values.emplace_back();
    else
      values.back().push_back(std::move(*at));
  command.erase(first, command.end());
  if (std::ranges::any_of(values, [](const auto& list) { return list.empty(); }))
    return Usage{"::: needs values after it: CMD ::: A B C"};
  if (!command.empty()) command = with_values(std::move(command), values.size());
  return std::nullopt;
}

// Whether the words describe a command; an error if they describe neither that nor a manifest.
std::variant<bool, Usage> read_form(const std::string& verb, JobWords& w, const Given& given) {
  RunOptions& o = w.o;
  if (auto empty = check_filled(given, {{"--array", {o.each.array}},
                                        {"--each", o.each.files},
                                        {"--each-csv", {o.each.csv}},
                                        {"--commands", {o.each.commands}},
                                        {"--name", {o.name}},
                                        {"--mail", {o.resources.mail}},
                                        {"--notify", {o.resources.notify}}}))
    return *empty;
  std::vector<std::string> tail = given.tail;
  const bool by_number = given.flags.contains("--completions");
  if (by_number && o.mpi)
    return Usage{"-n and --mpi are mutually exclusive: -N is the number of an MPI job's hosts"};
  const char* const counted = o.mpi ? "-N" : by_number ? "-n" : nullptr;
  if (!counted && !o.each.any() && !o.script && std::ranges::find(tail, kValues) != tail.end())
    if (auto wrong = take_values(tail, o.each.values)) return *wrong;
  if (!counted && !o.each.any() && !o.script && has_placeholder(tail) && stdin_is_piped())
    o.each.files = {"-"};
  if (!counted && !o.each.any() && !o.script) {
    if (!tail.empty())
      return Usage{"a command needs -n or --each: muster " + verb + " -n 10 -- CMD ARG..."};
    if (w.rest.size() + (o.file.empty() ? 0 : 1) != 1)
      return Usage{"needs one manifest, JOB.yaml, one script, or -n N -- CMD; - is stdin"};
    if (is_script_file(o.file))
      return Usage{"-f " + o.file + ": is a script, not a manifest: muster " + verb + " " + o.file};
    if (o.file.empty()) o.file = w.rest.front();
    return false;
  }
  const auto flag = index_flag(o.each, counted);
  if (const auto* wrong = std::get_if<Usage>(&flag)) return *wrong;
  if (auto wrong = read_surroundings(w)) return *wrong;
  if (auto wrong = read_resources(w)) return *wrong;
  if (auto wrong = read_program(verb, std::get<std::string>(flag), w, tail)) return *wrong;
  return true;
}

}  // namespace

void add_command_rows(FlagRows& rows, JobWords& w, const char* retries) {
  add_of_command(
      rows, w,
      {{"-J,--name", "J", "Name of the job (default: derived from the command)", &w.o.name},
       {"--retries,--backoff-limit-per-index", "R", retries, &w.o.retries, whole(0, kNumberMax)},
       {"--disruptions-max", "N",
        "Disruptions per index (node lost, drained or stopped, eviction, preemption) that do not "
        "count as failures (default 5)",
        &w.o.disruptions_max, whole(0, kNumberMax)},
       {"--export", "NAMES",
        "Environment variables to pass to CMD: ALL, NONE or NAME,NAME...; stored with the job "
        "(default)",
        &w.exported},
       {"--env", "NAME=VALUE", "Set an environment variable for CMD; repeatable", &w.variables},
       {"--no-limits", "",
        "Run CMD with the umask and limits (ulimit) of its node instead of those of this shell",
        &w.o.no_limits},
       {"-D,--chdir", "DIR", "Working directory of CMD (default: the current directory)", &w.dir}});
}

void add_place_rows(FlagRows& rows, JobWords& w) {
  add_resource_rows_if(rows, w, [](std::string_view name) {
    constexpr std::string_view kPlaces[] = {"--cpus",          "--mem",      "--gpus",   "--time",
                                            "--node-selector", "--priority", "--scratch"};
    return std::ranges::find(kPlaces, name) != std::end(kPlaces);
  });
}

// It is a gang anyway, and fails with its first index.
void add_host_rows(FlagRows& rows, JobWords& w) {
  add_resource_rows_if(
      rows, w, [](std::string_view name) { return name != "--gang" && name != "--max-fails"; });
}

std::optional<Usage> read_resources(JobWords& w) {
  if (Status right = check_scratch(w.o.resources); !right) return Usage{right.error().message};
  for (const ResourceFlag& one : kResourceFlags) {
    const std::vector<std::string>& given = w.resources[one.name];
    if (!one.repeats && given.size() > 1)
      return Usage{std::string(one.name) + ": given more than once"};
    for (const std::string& text : given)
      if (Status right = one.read(text, w.o.resources); !right) return Usage{right.error().message};
  }
  for (const auto check : {check_signal, check_retries})
    if (Status right = check(w.o.resources); !right) return Usage{right.error().message};
  return std::nullopt;
}

void add_job_rows(FlagRows& rows, JobWords& w) {
  rows.insert(rows.end(),
              {{"job", "JOB.yaml | SCRIPT ARG... | -- CMD ARG...",
                "Manifest of the job, a batch script, or a command after --", &w.rest},
               {"-f,--file", "JOB.yaml", "Manifest of the job, with its ConfigMaps (- reads stdin)",
                &w.o.file}});
  add_index_rows(rows, w);
  add_command_rows(
      rows, w,
      "Retries per index; an index that exhausts them fails without affecting others (default 0)");
  rows.insert(rows.end(),
              {{"--unique", "",
                "If the coordinator has a job of this name, append a number: J-2, J-3 and so on",
                &w.unique},
               {"--replace",
                "",
                "Replace a finished job of this name on the coordinator",
                &w.replace,
                kAnything,
                0,
                {"--unique"}}});
  add_resource_rows(rows, w);
}

void add_run_rows(FlagRows& rows, JobWords& w) {
  rows.insert(
      rows.end(),
      {{"--data-dir", "D",
        "Directory for state and logs; rerun with the same D to continue after a crash",
        &w.o.data_dir},
       {"--keep", "", "Keep state and logs of a Complete job even without --data-dir", &w.o.keep},
       {"--timeout", "T", "Time to wait before giving up, such as 10m or 1h30m (default: no limit)",
        &w.timeout},
       {"--log-level", "LEVEL", "Log level (default):", &w.o.log_level,
        one_of(find_key(Section::coordinator, "log-level")->words)}});
}

void add_dry_run_rows(FlagRows& rows, JobWords& w, const char* output) {
  rows.insert(rows.end(), {{"--dry-run", "",
                            "Print the manifest that would be sent, and do nothing", &w.o.dry_run},
                           {"-o", "FILE", output, &w.printed}});
}

namespace {

// Of the files that muster run writes.
Result<core::OutputPattern> own_pattern(const std::string& flag, const std::string& text) {
  auto pattern = run_file_pattern(text);
  if (!pattern) return invalid(flag + ": " + pattern.error().message);
  return pattern;
}

}  // namespace

std::optional<Usage> read_short_output(std::string& text, const std::vector<std::string>& forms,
                                       std::string& output) {
  if (text.empty() || std::ranges::find(forms, text) != forms.end()) return std::nullopt;
  if (!output.empty()) return Usage{"-o and --output are the same flag: use one of them"};
  output = std::exchange(text, "");
  return std::nullopt;
}

std::optional<Usage> read_err_file(const std::string& text, RunOptions& o) {
  if (text.empty()) return std::nullopt;
  auto pattern = own_pattern("--error", text);
  if (!pattern) return Usage{pattern.error().message};
  if (!o.files || *pattern != *o.files) o.err_files = std::move(*pattern);
  return std::nullopt;
}

std::optional<Usage> read_shown(const std::string& text, RunOptions& o) {
  if (text.empty()) return std::nullopt;
  if (core::looks_like_path(text)) {
    auto pattern = own_pattern("--output", text);
    if (!pattern) return Usage{pattern.error().message};
    o.files = std::move(*pattern);
    o.shown = Shown::none;
  } else if (text == "tag" || text == "prefix") {
    o.shown = Shown::tagged;
  } else if (text == "plain" || text == "raw") {
    o.shown = Shown::plain;
  } else if (text == "none") {
    o.shown = Shown::none;
  } else {
    return Usage{"--output: `" + text + "`: must be tag, plain, none or a file such as %j-%i.out" +
                 did_you_mean(text, {"tag", "plain", "none"}) + " (a file of that name is ./" +
                 text + ")"};
  }
  return std::nullopt;
}

std::optional<Usage> read_surroundings(JobWords& w) {
  RunOptions& o = w.o;
  auto wanted = parse_export(w.exported);
  if (!wanted) return Usage{"--export: " + wanted.error().message};
  o.exported = *wanted;
  for (const std::string& text : w.variables) {
    auto variable = parse_variable(text);
    if (!variable) return Usage{"--env: " + variable.error().message};
    o.environment[variable->first] = variable->second;
  }
  if (!w.dir.empty()) o.dir = absolute_dir(w.dir);
  return std::nullopt;
}

std::optional<Usage> read_command(const std::vector<std::string>& rest,
                                  const std::vector<std::string>& tail,
                                  std::vector<std::string>& command) {
  if (!tail.empty() && !rest.empty())
    return Usage{"`" + rest.front() + "` before `--`: the whole command comes after it"};
  command = rest;
  command.insert(command.end(), tail.begin(), tail.end());
  return std::nullopt;
}

std::optional<Usage> read_job(const std::string& verb, JobWords& w, const Given& given) {
  if (w.unique) w.o.exists = IfExists::number;
  if (w.replace) w.o.exists = IfExists::replace;
  const auto of_command = read_form(verb, w, given);
  if (const auto* wrong = std::get_if<Usage>(&of_command)) return *wrong;
  if (std::get<bool>(of_command)) return std::nullopt;
  // With a manifest, these settings belong in the manifest.
  for (const std::string& flag : w.of_command)
    if (given.flags.contains(flag))
      return Usage{flag + " is for a command, with -n or --each; set it in the manifest"};
  return std::nullopt;
}

}  // namespace muster::cli
