// The grammar of the verbs that run a command, which follows `--`: run, mpirun, exec.
#include "cli/client/objects.hpp"
#include "cli/line/parser.hpp"

#include <cstdlib>
#include <filesystem>

namespace muster::cli {
namespace {

constexpr int64_t kCountMax = std::numeric_limits<int32_t>::max();

RunOptions::Shown shown_of(const std::string& text) {
  using Shown = RunOptions::Shown;
  if (text == "prefix") return Shown::prefixed;
  if (text == "raw") return Shown::raw;
  return text == "none" ? Shown::none : Shown::automatic;
}

// What the flags of run and mpirun say, before they are checked.
struct RunWords {
  RunOptions o;
  std::vector<std::string> rest, variables, passed;
  std::string timeout, exported, dir, shown, mpi;
};

// The flags for a job made of a command.
std::vector<CLI::Option*> add_command_flags(CLI::App& app, RunWords& w, const char* retries) {
  return {
      app.add_option("--name", w.o.name, "Name of the job (default: derived from the command)")
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
          ->type_name("DIR")};
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

// The whole command, of which an unambiguous beginning may be before `--`.
std::optional<Usage> read_command(const std::vector<std::string>& rest,
                                  const std::vector<std::string>& tail,
                                  std::vector<std::string>& command) {
  if (!tail.empty() && !rest.empty())
    return Usage{"`" + rest.front() + "` before `--`: the whole command comes after it"};
  command = rest;
  command.insert(command.end(), tail.begin(), tail.end());
  return std::nullopt;
}

Verb add_run(CLI::App& root, const std::vector<std::string>& tail) {
  auto w = std::make_shared<RunWords>();
  Verb verb = new_verb(root, "Jobs", "run", "Run a job to completion, here or on a coordinator");
  verb.takes_command = true;
  CLI::App* app = verb.app;
  app->add_option("job", w->rest, "Manifest of the job, or a command after --")
      ->type_name("JOB.yaml | -- CMD ARG...");
  app->add_option("-f,--file", w->o.file, "Manifest of the job (- reads stdin)")
      ->type_name("JOB.yaml");
  auto* n = app->add_option("-n,--completions", w->o.completions,
                            "Number of indexes to run (JOB_COMPLETION_INDEX is 0 to N-1)")
                ->type_name("N")
                ->check(whole(1, kCountMax));
  app->add_option("-j,--parallelism", w->o.parallelism,
                  "Maximum running at once (default: one per slot)")
      ->type_name("P")
      ->check(whole(1, kCountMax))
      ->needs(n);
  for (CLI::Option* flag : add_command_flags(
           *app, *w,
           "Retries per index; an index that exhausts them fails without affecting others "
           "(default 0)"))
    flag->needs(n);
  app->add_option("--output", w->shown,
                  "Output of pods: prefix (prefix each line with its index), raw or none (default: "
                  "prefix, raw for one index)")
      ->check(one_of({"prefix", "raw", "none"}))
      ->type_name("HOW");
  app->add_option("--slots", w->o.slots,
                  "Slots on this machine (default: the value of -j, else the number of CPUs)")
      ->type_name("N")
      ->check(whole(1, kCountMax));
  add_run_flags(*app, *w);
  add_target(verb, "--namespace");
  app->footer(
      "Examples:\n  muster run job.yaml\n  muster run -n 20 -j 4 --retries 2 -- sh -c 'echo "
      "$JOB_COMPLETION_INDEX'\n"
      "  muster run --data-dir ./sweep job.yaml      # continue after a crash\n"
      "CMD runs as typed, with this shell's environment and directory. A command that cannot be "
      "started fails the job.\n"
      "Exit codes: 0 Complete, 1 Failed, 124 --timeout expired, 130 interrupted; with -n 1, that "
      "of the command.");
  verb.finish = [w, n, tail](const Settings&, const Target& target) -> Judged {
    RunOptions& o = w->o;
    o.target = target;
    if (auto wrong = read_limit("--timeout", w->timeout, o.timeout_ms)) return *wrong;
    o.shown = shown_of(w->shown);
    if (n->count() > 0) {
      if (auto wrong = read_surroundings(*w)) return *wrong;
      if (auto wrong = read_command(w->rest, tail, o.command)) return *wrong;
      if (!o.file.empty())
        return Usage{"-n and -f are mutually exclusive: -n runs a command, -f a manifest"};
      if (o.command.empty()) return Usage{"-n needs a command: muster run -n 10 -- CMD ARG..."};
      return o;
    }
    if (!tail.empty()) return Usage{"a command needs -n: muster run -n 10 -- CMD ARG..."};
    if (w->rest.size() + (o.file.empty() ? 0 : 1) != 1)
      return Usage{"needs one manifest, JOB.yaml, or -n N -- CMD"};
    if (o.file.empty()) o.file = w->rest.front();
    return o;
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
                  "Output of pods: raw, prefix (prefix each line with its index) or none (default "
                  "raw)")
      ->check(one_of({"prefix", "raw", "none"}))
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
    o.shown = w->shown.empty() ? RunOptions::Shown::raw : shown_of(w->shown);
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

Verb add_exec(CLI::App& root, const std::vector<std::string>& tail) {
  struct Words {
    ExecOptions o;
    std::vector<std::string> what;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "Jobs", "exec", "Run a command in a running pod");
  verb.takes_command = true;
  CLI::App* app = verb.app;
  app->add_option("what", w->what, "Pod, or job with --index, and the command after --")
      ->type_name("POD | job/J -- CMD ARG...")
      ->required();
  app->add_option("--index", w->o.index, "Index of the job")
      ->type_name("I")
      ->check(whole(0, kCountMax));
  app->add_flag("-i,--stdin", w->o.input, "Pass standard input to the command");
  app->add_flag("-t,--tty", w->o.terminal,
                "Give the command a terminal, with -i; standard input must be one");
  add_target(verb);
  app->footer(
      "Examples:\n  muster exec sweep-7-x2bqd -- nvidia-smi\n"
      "  muster exec job/sweep --index 7 -- sh -c 'df -h .; uptime'\n"
      "  muster exec -it sweep-7-x2bqd -- bash\n"
      "  muster exec -i sweep-7-x2bqd -- sh -c 'cat > input.csv' < input.csv\n"
      "CMD runs in the pod's first container, with its user, environment, directory and limits, "
      "until CMD or the pod ends. Without -i its standard input is empty. Ctrl-C ends it with "
      "SIGTERM, after 5 s with SIGKILL; with -t it is passed on like any other key.\n"
      "Exit codes: that of CMD (128+S if signal S ended it); 3 no such pod, 4 coordinator "
      "unreachable, 5 the pod is not running, 130 interrupted.");
  verb.finish = [w, tail](const Settings&, const Target& target) -> Judged {
    ExecOptions& o = w->o;
    o.target = target;
    if (o.terminal && !o.input) return Usage{"-t needs -i: muster exec -it POD -- CMD"};
    if (w->what.size() > 1)
      return Usage{"`" + w->what[1] + "`: the command comes after `--`: muster exec POD -- CMD"};
    const std::string& word = w->what.front();
    const size_t slash = word.find('/');
    const auto kind = slash == std::string::npos
                          ? Kind::pod
                          : parse_kind(word.substr(0, slash)).value_or(Kind::node);
    const std::string name = slash == std::string::npos ? word : word.substr(slash + 1);
    if ((kind != Kind::pod && kind != Kind::job) || name.empty())
      return Usage{"`" + word + "`: must be POD, pod/POD or job/J"};
    if (kind == Kind::pod && o.index)
      return Usage{"--index applies to jobs only: muster exec job/J --index 3 -- CMD"};
    (kind == Kind::pod ? o.pod : o.job) = name;
    if (tail.empty()) return Usage{"needs a command: muster exec " + word + " -- CMD ARG..."};
    o.command = tail;
    return o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> run_verbs(CLI::App& root, const std::vector<std::string>& tail) {
  return {add_run(root, tail), add_mpirun(root, tail), add_exec(root, tail)};
}

}  // namespace muster::cli
