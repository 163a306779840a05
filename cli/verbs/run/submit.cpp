// muster submit: creates on a coordinator the job that `muster run` would run, and exits.
#include "cli/verbs/jobs/wait.hpp"
#include "cli/verbs/run/job_flags.hpp"
#include "cli/verbs/run/run_options.hpp"
#include "cli/verbs/run/script_flags.hpp"
#include "cli/verbs/run/wanted_job.hpp"
#include "cli/verbs/when.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/mpi_job.hpp"
#include "client/inputs/resources.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/spec/values/instant.hpp"

#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace muster::cli {

struct SubmitOptions {
  RunOptions run;
  bool wait = false;
};

namespace {

struct Submitted {
  std::string name, ns;
  KnownObject known;
};

// Creates the job and prints it; or the exit code.
std::variant<Submitted, int> create(const SubmitOptions& given) {
  RunOptions options = given.run;
  auto inputs = take_inputs(options);
  if (!inputs) return fail(inputs.error(), "submit");
  const auto inputs_dir = shared_inputs_dir();
  if (*inputs && !inputs_dir) return fail(inputs_dir.error());
  auto wanted =
      wanted_job(options, kParallelismMax, *inputs, inputs_dir ? *inputs_dir : std::string());
  if (!wanted) return fail(wanted.error(), options.completions > 0 ? "submit" : "");
  if (options.dry_run) return print_manifest(*wanted, options.output);
  const auto client = connect(options.target);
  if (*inputs)
    if (Status shared = share_inputs(*inputs_dir, wanted->job.inputs); !shared)
      return fail(shared.error());
  auto job = create_wanted(*client, *wanted, options.exists);
  if (!job) return fail(job.error());
  std::string name = text_at(*job, {"metadata", "name"});
  if (options.output == Output::json)
    std::cout << dumped(*job, 4) << std::endl;
  else if (options.output == Output::yaml)
    std::cout << to_yaml(*job) << std::flush;
  else
    std::cout << "job.batch/" << name << (options.output == Output::name ? "" : " created")
              << std::endl;
  return Submitted{std::move(name), std::move(wanted->ns), known_of(*job)};
}

}  // namespace

int execute(const SubmitOptions& options) {
  const auto created = create(options);  // its client is already destroyed: only one per thread
  if (const int* code = std::get_if<int>(&created)) return *code;
  if (!options.wait) return kDone;
  WaitOptions wait;
  wait.target = options.run.target;
  const auto& [name, ns, known] = std::get<0>(created);
  wait.target.ns = ns;
  wait.jobs = {name};
  wait.known = known;
  wait.timeout_ms = options.run.timeout_ms;
  return execute(wait);
}

namespace {

// When it begins, and who is told when it has finished.
void add_later_rows(FlagRows& rows, JobWords& w, std::string& begin) {
  ResourceWishes& wishes = w.o.resources;
  rows.insert(rows.end(),
              {{"--mail", "ADDR,...",
                "Mail these addresses when the job has finished, through the mail system of the "
                "coordinator's machine",
                &wishes.mail},
               {"--notify", "COMMAND",
                "Run this line of sh when the job has finished, as a job of its own with the same "
                "environment and directory; $MUSTER_ENDED_JOB, $MUSTER_ENDED_STATE (Complete or "
                "Failed) and others say what has ended",
                &wishes.notify},
               {"--notify-on", "WHEN", "When to use --mail and --notify (default end):",
                &wishes.notify_on, one_of({"end", "fail"})},
               {"-b,--begin", "TIME",
                "Start no index before this time, such as 22:00, 2027-01-31T08:00, now+1hour or "
                "tomorrow, in this machine's time zone",
                &begin},
               {"-H,--hold", "",
                "Create the job on hold: nothing starts until `muster release` releases it",
                &w.o.resources.hold}});
}

// The flags of an MPI job whose command calls the launcher.
struct MpiWords {
  std::string mpi;  // empty: it is none
  int32_t hosts = 0;
  MpiWishes wishes;
};

void add_mpi_rows(FlagRows& rows, JobWords& words, MpiWords& w) {
  words.of_command.insert(words.of_command.end(),
                          {"--mpi", "--hosts", "--slots", "--cpus-per-rank", "--oversubscribe"});
  rows.insert(rows.end(),
              {{"--mpi", "MPI",
                "MPI job: CMD or SCRIPT runs on the first of -N hosts and calls mpirun, which "
                "starts ranks on all of them: openmpi, mpich or auto",
                &w.mpi, one_of({"auto", "openmpi", "mpich"})},
               {"-N,--hosts",
                "N",
                "With --mpi, number of hosts, which start together",
                &w.hosts,
                whole(1, kNumberMax),
                0,
                {},
                "--mpi"},
               {"--slots",
                "S",
                "With --mpi, ranks on each host (default)",
                &w.wishes.slots,
                whole(1, core::kMpiSlotsMax),
                0,
                {},
                "--mpi"},
               {"--cpus-per-rank",
                "C",
                "With --mpi, CPUs of each rank; a host requests those of its slots (default 1)",
                &w.wishes.cpus_per_rank,
                whole(1, kCpusPerRankMax),
                0,
                {},
                "--mpi"},
               {"--oversubscribe",
                "",
                "With --mpi, request no CPUs for the ranks: hosts may share CPUs",
                &w.wishes.oversubscribe,
                kAnything,
                0,
                {},
                "--mpi"}});
}

std::optional<Usage> read_mpi(const MpiWords& w, RunOptions& o) {
  if (w.mpi.empty()) return std::nullopt;
  if (w.hosts == 0)
    return Usage{"--mpi needs -N, the number of hosts: --mpi " + w.mpi +
                 " -N 4 -- mpirun CMD ARG..."};
  if (o.each.any())
    return Usage{"--mpi and inputs (--array, --each, --commands) are mutually exclusive"};
  MpiWishes wishes = w.wishes;
  wishes.kind = mpi_kind(w.mpi);
  wishes.batch = true;
  o.mpi = wishes;
  o.completions = o.parallelism = w.hosts;
  return std::nullopt;
}

// The files of --output and --error.
std::optional<Usage> check_files(const Given& given, const RunOptions& o) {
  for (const auto& [flag, file] :
       {std::pair("--output", &o.out_file), std::pair("--error", &o.err_file)}) {
    if (given.flags.contains(flag) && file->empty())
      return Usage{std::string(flag) + " needs the name of a file, such as logs/%j-%a.out"};
    // Words of `muster run --output`.
    if (*file == "none" || *file == "tag" || *file == "plain")
      return Usage{std::string(flag) + ": `" + *file +
                   "`: must be a file: without one, output stays in the pods' logs; /dev/null "
                   "drops it; a file of that name is ./" +
                   *file};
  }
  return std::nullopt;
}

std::optional<Usage> settle_mpi(RunOptions& o) {
  o.exported.for_mpi = o.mpi.has_value();
  if (!o.mpi) return std::nullopt;
  if (Status right = settle_cpus(*o.mpi, o.resources); !right) return Usage{right.error().message};
  if (o.resources.placement.empty()) o.resources.placement = "spread";
  return std::nullopt;
}

}  // namespace

Verb submit_verb() {
  struct Words : JobWords {
    bool wait = false;
    std::string begin;
    MpiWords mpi;
  };
  auto w = std::make_shared<Words>();
  FlagRows rows;
  add_job_rows(rows, *w);
  rows.push_back({"--wait", "", "Wait until the job has finished", &w->wait});
  rows.push_back({"--timeout", "T",
                  "With --wait, time to wait before giving up, such as 10m (default: no limit)",
                  &w->timeout});
  rows.insert(
      rows.end(),
      {{"--output", "FILE",
        "File that each pod writes to on its node, such as logs/%j-%a.out, instead of its log "
        "(/dev/null: nowhere): %j "
        "is the job, %a the task of an array or the index, %i the index, %r the attempt, %N the "
        "node",
        &w->o.out_file},
       {"-e,--error", "FILE", "Likewise, for stderr (default: the file of --output)",
        &w->o.err_file}});
  add_mpi_rows(rows, *w, w->mpi);
  add_later_rows(rows, *w, w->begin);
  w->of_command.insert(w->of_command.end(), {"--output", "--error", "--mail", "--notify",
                                             "--notify-on", "--begin", "--hold"});
  add_dry_run_rows(rows, *w,
                   "Short for --output; yaml, json or name print the created job in this form, or "
                   "with --dry-run its manifest (yaml by default, never name)");
  return {.title = {"Jobs", "submit", "Start a job on a coordinator and leave it running"},
          .rows = std::move(rows),
          .asks = {&w->o.target, "--namespace"},
          .footer =
              "Examples:\n  muster submit job.yaml\n"
              "  muster submit -n 100 -j 10 --mem 4Gi --time 2h -- ./step\n"
              "  muster submit --array 1-100%10 -- ./step --seed {}\n"
              "  muster submit --array 1-100%10 job.sh ARG\n"
              "  muster submit --mpi openmpi -N 4 --slots 8 -- mpirun ./solver\n"
              "  muster submit --each files.txt --dry-run -o yaml -- ./step {}\n"
              "CMD runs as typed, with this shell's environment and directory, on nodes that have "
              "its files. Without -j, as many run at once as the nodes have slots for. A command "
              "that cannot be started fails the job.\n" +
              std::string(kScripts) + kPlaceholders +
              "Exit codes: 0 created; with --wait, those of muster wait.",
          .takes_command = true,
          .takes_values = true,
          .script = script_reader({w, &w->o}, true),
          .finish = [w](const Given& given) -> Judged {
            RunOptions& o = w->o;
            if (auto wrong = read_limit("--timeout", w->timeout, o.timeout_ms)) return *wrong;
            if (auto wrong = read_mpi(w->mpi, o)) return *wrong;
            if (auto wrong = read_job("submit", *w, given)) return *wrong;
            if (auto wrong = settle_mpi(o)) return *wrong;
            if (given.flags.contains("--begin")) {
              const Millis now = wall_now();
              const auto at = parse_begin(w->begin, now);
              if (!at) return Usage{"--begin: " + at.error().message};
              if (*at < now && w->begin != "today")
                o.warnings.push_back("--begin: " + w->begin +
                                     " is in the past, so the job starts at once");
              o.resources.begin = core::utc_text(*at);
            }
            if (auto wrong = read_short_output(w->printed, {"yaml", "json", "name"}, o.out_file))
              return *wrong;
            if (auto wrong = check_files(given, o)) return *wrong;
            if (Status right = check_notice(o.resources); !right)
              return Usage{right.error().message};
            if (given.flags.contains("--timeout") && !w->wait)
              return Usage{"--timeout needs --wait"};
            if (w->wait && o.dry_run) return Usage{"--wait and --dry-run are mutually exclusive"};
            if (w->printed == "name" && o.dry_run)
              return Usage{"-o name: --dry-run prints yaml or json"};
            o.output = read_output(w->printed);
            return SubmitOptions{o, w->wait};
          }};
}

}  // namespace muster::cli
