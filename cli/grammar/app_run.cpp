// The grammar of the verbs that run the command after `--` as a job: run, submit, mpirun.
#include "base/text/nearest.hpp"
#include "cli/grammar/parser.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/resources.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::cli {
namespace {

constexpr int64_t kCountMax = std::numeric_limits<int32_t>::max();

// "tag", "plain", "none" or a pattern; the first two used to be "prefix" and "raw".
std::optional<Usage> read_shown(const std::string& text, RunOptions& o) {
  if (text.empty()) return std::nullopt;
  if (looks_like_path(text)) {
    auto pattern = OutputPattern::parse(text);
    if (!pattern) return Usage{"--output: " + pattern.error().message};
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

// The values of run's and mpirun's flags, before they are checked.
struct RunWords {
  RunOptions o;
  CLI::Option* count = nullptr;          // -n
  std::vector<CLI::Option*> of_command;  // flags that cannot be combined with a manifest
  std::vector<std::string> rest, variables, passed;
  std::string timeout, exported, dir, shown, mpi, printed;
  std::map<std::string, std::vector<std::string>> resources;  // by flag
};

// The flags for a job made from a command.
void add_command_flags(CLI::App& app, RunWords& w, const char* retries) {
  w.of_command.insert(
      w.of_command.end(),
      {app.add_option("--name", w.o.name, "Name of the job (default: derived from the command)")
           ->type_name("J"),
       app.add_option("--retries,--backoff-limit-per-index", w.o.retries, retries)
           ->type_name("R")
           ->check(whole(0, kCountMax)),
       app.add_option("--export", w.exported,
                      "Environment variables to pass to CMD: ALL, NONE or NAME,NAME...; stored "
                      "with the job (default ALL)")
           ->type_name("NAMES"),
       app.add_option("--env", w.variables, "Set an environment variable for CMD; repeatable")
           ->type_name("NAME=VALUE")
           ->allow_extra_args(false)
           ->take_all(),
       app.add_option("--chdir", w.dir, "Working directory of CMD (default: the current directory)")
           ->type_name("DIR")});
}

// The flags for how the job is run.
void add_run_flags(CLI::App& app, RunWords& w) {
  app.add_option("--data-dir", w.o.data_dir,
                 "Directory for state and logs; rerun with the same D to continue after a crash")
      ->type_name("D");
  app.add_flag("--keep", w.o.keep, "Keep state and logs of a Complete job even without --data-dir");
  app.add_option("--timeout", w.timeout,
                 "Time to wait before giving up, such as 10m or 1h30m (default: no limit)")
      ->type_name("T");
  add_log_level(app, w.o.log_level);
}

std::optional<Usage> read_surroundings(RunWords& w) {
  RunOptions& o = w.o;
  auto wanted = parse_export(w.exported.empty() ? "ALL" : w.exported);
  if (!wanted) return Usage{"--export: " + wanted.error().message};
  o.exported = *wanted;
  for (const std::string& text : w.variables) {
    auto variable = parse_variable(text);
    if (!variable) return Usage{"--env: " + variable.error().message};
    o.environment[variable->first] = variable->second;
  }
  if (w.dir.empty()) return std::nullopt;
  std::error_code error;
  o.dir = std::filesystem::absolute(w.dir, error).lexically_normal().string();
  if (o.dir.size() > 1 && o.dir.ends_with('/')) o.dir.pop_back();
  return std::nullopt;
}

// The whole command: everything after `--`, or all arguments if there is no `--`.
std::optional<Usage> read_command(const std::vector<std::string>& rest,
                                  const std::vector<std::string>& tail,
                                  std::vector<std::string>& command) {
  if (!tail.empty() && !rest.empty())
    return Usage{"`" + rest.front() + "` before `--`: the whole command comes after it"};
  command = rest;
  command.insert(command.end(), tail.begin(), tail.end());
  return std::nullopt;
}

// The flags that define the indexes of a command.
void add_index_flags(CLI::App& app, RunWords& w) {
  w.count = app.add_option("-n,--completions", w.o.completions,
                           "Number of indexes to run (JOB_COMPLETION_INDEX is 0 to N-1)")
                ->type_name("N")
                ->check(whole(1, kCountMax));
  app.add_option(
         "--each", w.o.each.files,
         "Run CMD for each line of a file (- reads stdin); the line replaces {} in CMD and is in "
         "$MUSTER_INPUT; repeat the flag for all combinations")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->take_all();
  app.add_flag("-0,--null", w.o.each.null,
               "Inputs of --each are separated by null bytes instead of newlines");
  app.add_option(
         "--each-csv", w.o.each.csv,
         "Run CMD for each record of a CSV file with a header (- reads stdin); {NAME} or {1} "
         "is a column")
      ->type_name("FILE");
  w.of_command.push_back(app.add_option("-j,--parallelism", w.o.parallelism,
                                        "Maximum running at once (default: one per slot)")
                             ->type_name("P")
                             ->check(whole(1, kCountMax)));
}

// Flags whose values are checked by a function.
struct ResourceFlag {
  const char *name, *type, *help;
  Status (*read)(const std::string& text, ResourceWishes& into);
  bool repeats = false;
};
constexpr ResourceFlag kResourceFlags[] = {
    {"--cpus", "N", "CPUs that each index needs free on its node, such as 2 or 0.5", read_cpus},
    {"--mem", "SIZE", "Memory for each index, such as 4Gi; both its request and its limit",
     read_memory},
    {"--gpus", "N", "GPUs for each index, such as 1 or, of another kind, amd.com/gpu=1", read_gpus},
    {"--time", "T", "Time limit of each attempt, such as 90m or 1:30:00 (default: no limit)",
     read_time},
    {"--node-selector", "LABEL=VALUE", "Only nodes with this label; repeatable", read_node_label,
     true},
    {"--after", "KIND:JOB",
     "Start when that job has ended: ok:JOB (with success), notok:JOB or any:JOB; repeatable",
     read_after, true},
};

void add_resource_flags(CLI::App& app, RunWords& w) {
  for (const ResourceFlag& one : kResourceFlags) {
    CLI::Option* flag = app.add_option(one.name, w.resources[one.name], one.help)
                            ->type_name(one.type)
                            ->allow_extra_args(false);
    if (one.repeats) flag->take_all();
    w.of_command.push_back(flag);
  }
  w.of_command.push_back(
      app.add_option("--priority", w.o.resources.priority,
                     "Priority of the job; higher ones go first and may preempt lower ones")
          ->type_name("N"));
  w.of_command.push_back(
      app.add_option("--scratch", w.o.resources.scratch,
                     "Scratch directory for each index, $MUSTER_SCRATCH, removed with it; "
                     "SIZE such as 10Gi limits it")
          ->type_name("[SIZE]")
          ->expected(0, 1));
  w.of_command.push_back(app.add_flag("--private-tmp", w.o.resources.private_tmp,
                                      "Give each index its own /tmp and /var/tmp"));
  w.of_command.push_back(
      app.add_flag("--gang", w.o.resources.gang, "Start indexes together or not at all"));
}

void add_array_flag(CLI::App& app, RunWords& w) {
  app.add_option("--array", w.o.each.array,
                 "Run CMD for each number, as Slurm writes them: 1-100, 0-15:4 or 1,5,9-12, with "
                 "%10 for at most 10 at once; the number replaces {} in CMD and is MUSTER_INPUT "
                 "and SLURM_ARRAY_TASK_ID")
      ->type_name("RANGES");
}

// The flags that define the job: a manifest, or a command and its indexes. `more`: further
// flags for indexes.
void add_job_flags(CLI::App& app, RunWords& w, void (*more)(CLI::App&, RunWords&) = nullptr) {
  app.add_option("job", w.rest, "Manifest of the job, or a command after --")
      ->type_name("JOB.yaml | -- CMD ARG...");
  app.add_option("-f,--file", w.o.file, "Manifest of the job, with its ConfigMaps (- reads stdin)")
      ->type_name("JOB.yaml");
  add_index_flags(app, w);
  if (more != nullptr) more(app, w);
  add_command_flags(app, w,
                    "Retries per index; an index that exhausts them fails without affecting others "
                    "(default 0)");
  add_resource_flags(app, w);
}

std::optional<Usage> read_resources(RunWords& w) {
  if (Status right = check_scratch(w.o.resources); !right) return Usage{right.error().message};
  for (const ResourceFlag& one : kResourceFlags)
    for (const std::string& text : w.resources[one.name])
      if (Status right = one.read(text, w.o.resources); !right) return Usage{right.error().message};
  return std::nullopt;
}

void add_dry_run(CLI::App& app, RunWords& w, const char* output) {
  app.add_flag("--dry-run", w.o.dry_run, "Print the manifest that would be sent, and do nothing");
  app.add_option("-o", w.printed, output)
      ->type_name("FORMAT")
      ->check(one_of({"yaml", "json", "name"}));
}

// With a manifest, these settings belong in the manifest.
std::optional<Usage> refuse_command_flags(const RunWords& w, bool of_command) {
  if (of_command) return std::nullopt;
  for (const CLI::Option* flag : w.of_command)
    if (flag->count() > 0)
      return Usage{flag->get_name() +
                   " is for a command, with -n or --each; set it in the manifest"};
  return std::nullopt;
}

// What --help says about placeholders.
constexpr const char* kPlaceholders =
    "With --each, {} in a word of CMD is the input: {.} without extension, {/} basename, {//} "
    "directory, {/.} basename without extension, {#} its number from 1, {1} {2.} {3/} columns. "
    "An input never splits a word and is not interpreted by a shell. It is also in MUSTER_INPUT, "
    "and its columns, if there are several, are in MUSTER_INPUT_1 and so on. Without {}, CMD gets "
    "only these variables. If something is piped in and CMD has {}, --each - is the default.\n";

// What --help says about files.
constexpr const char* kOutputFiles =
    "--output FILE writes stdout and stderr of each pod to a file: %j job, %i index, %a attempt, "
    "%n node, %p pod, %% a percent sign, %5i at least 5 digits. Directories are made. Without %a, "
    "a file has the output of the newest attempt.\n";

// Whether the words describe a command; an error if they describe neither that nor a manifest.
std::variant<bool, Usage> read_form(const std::string& verb, RunWords& w,
                                    const std::vector<std::string>& tail) {
  RunOptions& o = w.o;
  const std::string example = "muster " + verb + " -n 10 -- CMD ARG...";
  const bool counted = w.count->count() > 0;
  if (!counted && !o.each.any() && has_placeholder(tail) && stdin_is_piped()) o.each.files = {"-"};
  if (!counted && !o.each.any()) {
    if (!tail.empty()) return Usage{"a command needs -n or --each: " + example};
    if (w.rest.size() + (o.file.empty() ? 0 : 1) != 1)
      return Usage{"needs one manifest, JOB.yaml, or -n N -- CMD"};
    if (o.file.empty()) o.file = w.rest.front();
    return false;
  }
  std::vector<std::string> flags;
  if (counted) flags.emplace_back("-n");
  if (!o.each.array.empty()) flags.emplace_back("--array");
  if (!o.each.files.empty()) flags.emplace_back("--each");
  if (!o.each.csv.empty()) flags.emplace_back("--each-csv");
  const std::string flag = flags.front();
  if (flags.size() > 1)
    return Usage{flag + " and " + flags[1] +
                 " are mutually exclusive: each says what the indexes are"};
  if (std::count(o.each.files.begin(), o.each.files.end(), "-") > 1)
    return Usage{"--each - can be given only once: there is only one stdin"};
  if (o.each.null && o.each.files.empty()) return Usage{"-0 applies to --each FILE"};
  if (auto wrong = read_surroundings(w)) return *wrong;
  if (auto wrong = read_resources(w)) return *wrong;
  if (auto wrong = read_command(w.rest, tail, o.command)) return *wrong;
  if (!o.file.empty())
    return Usage{flag + " and -f are mutually exclusive: " + flag +
                 " runs a command, -f a manifest"};
  if (o.command.empty())
    return Usage{flag + " needs a command: " +
                 (counted ? example
                          : "muster " + verb + " " + flag +
                                (o.each.array.empty() ? " FILE" : " 1-100") + " -- CMD {}")};
  return true;
}

// Reads the flags that add_job_flags added.
std::optional<Usage> read_job(const std::string& verb, RunWords& w,
                              const std::vector<std::string>& tail) {
  const auto of_command = read_form(verb, w, tail);
  if (const auto* wrong = std::get_if<Usage>(&of_command)) return *wrong;
  return refuse_command_flags(w, std::get<bool>(of_command));
}

Verb add_run(CLI::App& root, const std::vector<std::string>& tail) {
  auto w = std::make_shared<RunWords>();
  auto retry = std::make_shared<bool>(false);
  Verb verb = new_verb(root, "Jobs", "run", "Run a job to completion, here or on a coordinator");
  verb.takes_command = true;
  CLI::App* app = verb.app;
  add_job_flags(*app, *w);
  app->add_option("--output", w->shown,
                  "Output of pods: tag (each line with its index), plain, none, or a file for each "
                  "pod, such as logs/%j-%i.out (default: tag, plain for one index)")
      ->type_name("HOW");
  app->add_flag("-k,--keep-order", w->o.keep_order,
                "Show output in the order of the indexes, each as soon as all before it are done");
  app->add_option("--slots", w->o.slots,
                  "Slots on this machine (default: the value of -j, else the number of CPUs)")
      ->type_name("N")
      ->check(whole(1, kCountMax));
  add_run_flags(*app, *w);
  app->add_flag("--retry-failed", *retry,
                "Run the indexes again that failed in --data-dir D; omit the job");
  add_dry_run(*app, *w, "Format of --dry-run: yaml or json (default yaml)");
  add_target(verb, "--namespace");
  app->footer(
      "Examples:\n  muster run job.yaml\n  muster run -n 20 -j 4 --retries 2 -- sh -c 'echo "
      "$JOB_COMPLETION_INDEX'\n"
      "  muster run --each files.txt -- convert {} {.}.png\n"
      "  find . -name '*.log' -print0 | muster run -0 --each - -- gzip {}\n"
      "  muster run --each-csv grid.csv -- ./train --lr {lr} --seed {seed}\n"
      "  muster run --data-dir ./sweep job.yaml      # continue after a crash\n"
      "  muster run --data-dir ./sweep --retry-failed\n"
      "CMD runs as typed, with this shell's environment and directory. A command that cannot be "
      "started fails the job.\n" +
      std::string(kPlaceholders) + kOutputFiles +
      "Exit codes: 0 Complete, 1 Failed, 4 out of descriptors, threads or memory, 124 --timeout "
      "expired, 130 interrupted; with -n 1, that of the command.");
  verb.finish = [w, retry, tail](const Settings&, const Target& target) -> Judged {
    RunOptions& o = w->o;
    o.target = target;
    if (auto wrong = read_limit("--timeout", w->timeout, o.timeout_ms)) return *wrong;
    if (auto wrong = read_shown(w->shown, o)) return *wrong;
    if (o.keep_order && o.shown == Shown::none)
      return Usage{"--keep-order is for what is shown: with --output tag or plain"};
    const bool no_job = tail.empty() && w->rest.empty() && o.file.empty();
    if (*retry) {
      if (o.data_dir.empty()) return Usage{"--retry-failed needs --data-dir D"};
      if (o.dry_run) return Usage{"--retry-failed and --dry-run are mutually exclusive"};
      o.retry = RetryWishes{.failed = true, .index = "", .name = "", .job = "", .if_any = true};
    }
    if (!*retry || !no_job || w->count->count() > 0 || o.each.any())
      if (auto wrong = read_job("run", *w, tail)) return *wrong;
    if (!w->printed.empty() && !o.dry_run) return Usage{"-o needs --dry-run"};
    if (w->printed == "name") return Usage{"-o name: --dry-run prints yaml or json"};
    o.output = read_output(w->printed);
    return o;
  };
  return verb;
}

Verb add_submit(CLI::App& root, const std::vector<std::string>& tail) {
  auto w = std::make_shared<RunWords>();
  auto wait = std::make_shared<bool>(false);
  Verb verb = new_verb(root, "Jobs", "submit", "Start a job on a coordinator and leave it running");
  verb.takes_command = true;
  CLI::App* app = verb.app;
  add_job_flags(*app, *w, add_array_flag);
  app->add_flag("--wait", *wait, "Wait until the job has finished");
  CLI::Option* const timeout =
      app->add_option("--timeout", w->timeout,
                      "With --wait, time to wait before giving up, such as 10m (default: no limit)")
          ->type_name("T");
  add_dry_run(*app, *w,
              "Print the created job as yaml, json or name; with --dry-run, the manifest as yaml "
              "(default) or json");
  add_target(verb, "--namespace");
  app->footer(
      "Examples:\n  muster submit job.yaml\n"
      "  muster submit -n 100 -j 10 --mem 4Gi --time 2h -- ./step\n"
      "  muster submit --array 1-100%10 -- ./step --seed {}\n"
      "  muster submit --each files.txt --dry-run -o yaml -- ./step {}\n"
      "CMD runs as typed, with this shell's environment and directory, on nodes that have its "
      "files. Without -j, as many run at once as the nodes have slots for. A command that cannot "
      "be started fails the job.\n" +
      std::string(kPlaceholders) + "Exit codes: 0 created; with --wait, those of muster wait.");
  verb.finish = [w, wait, timeout, tail](const Settings&, const Target& target) -> Judged {
    RunOptions& o = w->o;
    o.target = target;
    if (auto wrong = read_limit("--timeout", w->timeout, o.timeout_ms)) return *wrong;
    if (auto wrong = read_job("submit", *w, tail)) return *wrong;
    if (timeout->count() > 0 && !*wait) return Usage{"--timeout needs --wait"};
    if (*wait && o.dry_run) return Usage{"--wait and --dry-run are mutually exclusive"};
    if (w->printed == "name" && o.dry_run) return Usage{"-o name: --dry-run prints yaml or json"};
    o.output = read_output(w->printed);
    return SubmitOptions{o, *wait};
  };
  return verb;
}

// -x NAME passes a variable of this shell, whatever --export says; -x NAME=VALUE sets one.
std::optional<Usage> read_passed(const std::vector<std::string>& passed, RunOptions& o) {
  for (const std::string& text : passed) {
    if (text.find('=') == std::string::npos) {
      if (text.empty() || std::getenv(text.c_str()) == nullptr)
        return Usage{"-x: `" + text + "` is not set; give it a value: -x NAME=VALUE"};
      o.exported.names.push_back(text);
      o.mpi->passed.push_back(text);
      continue;
    }
    auto variable = parse_variable(text);
    if (!variable) return Usage{"-x: " + variable.error().message};
    o.environment[variable->first] = variable->second;
    o.mpi->passed.push_back(variable->first);
  }
  return std::nullopt;
}

std::string many(int64_t number, const char* one, const char* more) {
  return std::to_string(number) + " " + (number == 1 ? one : more);
}

// The number of hosts that the ranks need, unless it was given; then the ranks must fit.
std::optional<Usage> settle_hosts(const MpiWishes& mpi, int32_t& hosts) {
  const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  if (hosts == 0 && mpi.ranks == 0)
    return Usage{"needs --hosts N or --np P: muster mpirun -N 4 -- CMD ARG..."};
  if (hosts == 0) hosts = static_cast<int32_t>(up(mpi.ranks, mpi.slots));
  const int64_t room = int64_t{hosts} * mpi.slots;
  if (mpi.ranks <= room) return std::nullopt;
  const int64_t slots = up(mpi.ranks, hosts);
  std::string right = "use -N " + std::to_string(up(mpi.ranks, mpi.slots));
  if (slots <= core::kMpiSlotsMax) right += " or --slots " + std::to_string(slots);
  return Usage{"--np " + std::to_string(mpi.ranks) + ": there is room for " +
               many(room, "rank", "ranks") + " (" + many(hosts, "host", "hosts") +
               " with --slots " + std::to_string(mpi.slots) + "): " + right};
}

Verb add_mpirun(CLI::App& root, const std::vector<std::string>& tail) {
  auto w = std::make_shared<RunWords>();
  auto mpi = std::make_shared<MpiWishes>();
  Verb verb = new_verb(root, "Jobs", "mpirun",
                       "Run an MPI program on several hosts, here or on a coordinator");
  verb.takes_command = true;
  CLI::App* app = verb.app;
  app->add_option("command", w->rest, "The MPI program, after --")->type_name("-- CMD ARG...");
  app->add_option("-N,--hosts", w->o.completions,
                  "Number of hosts: pods that start together, each with --slots ranks (default: as "
                  "many as --np needs)")
      ->type_name("N")
      ->check(whole(1, kCountMax));
  app->add_option("--slots", mpi->slots, "Ranks on each host (default 1)")
      ->type_name("S")
      ->check(whole(1, core::kMpiSlotsMax));
  app->add_option("-n,--np", mpi->ranks,
                  "Number of ranks (default: one for each slot of each host); also -np")
      ->type_name("P")
      ->check(whole(1, kCountMax));
  app->add_option("-x", w->passed,
                  "Pass a variable of this shell to the ranks, or set one; repeatable")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false)
      ->take_all();
  app->add_flag("--tag-output", mpi->tag_output, "Prefix each line of output with its rank");
  app->add_option(
         "--mpi", w->mpi,
         "Which MPI starts the program: openmpi, mpich (or another with its launcher, Hydra), "
         "or auto (default auto: whichever mpirun is)")
      ->check(one_of({"auto", "openmpi", "mpich"}))
      ->type_name("MPI");
  add_command_flags(*app, *w, "Retries of the whole MPI run (default 0)");
  app->add_option("--output", w->shown,
                  "Output of pods: plain, tag (each line with its index), none, or a file for each "
                  "pod, such as logs/%j-%i.out (default plain)")
      ->type_name("HOW");
  add_run_flags(*app, *w);
  add_target(verb, "--namespace");
  app->footer(
      "Examples:\n  muster mpirun -N 4 --slots 8 -- ./solver input.dat\n"
      "  muster mpirun -np 2 -- ./solver\n"
      "  muster mpirun -N 2 --mpi mpich -x OMP_NUM_THREADS=4 --tag-output -- ./solver\n"
      "CMD runs as typed, with this shell's environment and directory, but without what another "
      "launcher or batch system has set (SLURM_*, PBS_*, LSB_*, SGE_*, PMI_*, PMIX_*, OMPI_*, "
      "HYDRA_*).\n"
      "Exit codes: 0 Complete, 124 --timeout expired, 130 interrupted; otherwise that of the "
      "launcher, or 1.");
  verb.finish = [w, mpi, tail](const Settings&, const Target& target) -> Judged {
    RunOptions& o = w->o;
    o.target = target;
    if (auto wrong = settle_hosts(*mpi, o.completions)) return *wrong;
    o.parallelism = o.completions;
    if (w->mpi == "openmpi") mpi->kind = core::MpiKind::openmpi;
    if (w->mpi == "mpich") mpi->kind = core::MpiKind::mpich;
    o.mpi = *mpi;
    o.shown = Shown::plain;
    if (auto wrong = read_shown(w->shown, o)) return *wrong;
    if (auto wrong = read_limit("--timeout", w->timeout, o.timeout_ms)) return *wrong;
    if (auto wrong = read_surroundings(*w)) return *wrong;
    o.exported.for_mpi = true;
    if (auto wrong = read_passed(w->passed, o)) return *wrong;
    if (auto wrong = read_command(w->rest, tail, o.command)) return *wrong;
    if (o.command.empty()) return Usage{"needs a program: muster mpirun -N 4 -- CMD ARG..."};
    return o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> run_verbs(CLI::App& root, const std::vector<std::string>& tail) {
  return {add_run(root, tail), add_submit(root, tail), add_mpirun(root, tail)};
}

}  // namespace muster::cli
