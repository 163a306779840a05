// muster mpirun: an MPI program as a job whose indexes are hosts, run like any other (run.cpp).
#include "cli/verbs/run/job_flags.hpp"
#include "cli/verbs/words.hpp"
#include "client/inputs/mpi_job.hpp"

#include <cstdlib>
#include <utility>

namespace muster::cli {
namespace {

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
  if (mpi.ranks <= room || mpi.oversubscribe) return std::nullopt;
  const int64_t slots = up(mpi.ranks, hosts);
  std::string right = "use -N " + std::to_string(up(mpi.ranks, mpi.slots));
  if (slots <= core::kMpiSlotsMax) right += " or --slots " + std::to_string(slots);
  return Usage{"--np " + std::to_string(mpi.ranks) + ": there is room for " +
               many(room, "rank", "ranks") + " (" + many(hosts, "host", "hosts") +
               " with --slots " + std::to_string(mpi.slots) + "): " + right +
               ", or --oversubscribe"};
}

struct MpirunWords : JobWords {
  MpiWishes wishes;
  std::vector<std::string> passed;
  std::string mpi;
};

std::optional<Usage> read_mpirun(MpirunWords& w, const std::vector<std::string>& tail) {
  RunOptions& o = w.o;
  if (auto wrong = settle_hosts(w.wishes, o.completions)) return wrong;
  o.parallelism = o.completions;
  w.wishes.kind = mpi_kind(w.mpi);
  if (w.wishes.mca.size() % 2 != 0)
    return Usage{"--mca needs a name and a value: --mca btl tcp,self"};
  o.mpi = w.wishes;
  o.shown = Shown::plain;
  if (auto wrong = read_short_output(w.printed, {"yaml", "json"}, w.shown)) return wrong;
  if (auto wrong = read_shown(w.shown, o)) return wrong;
  if (auto wrong = read_limit("--timeout", w.timeout, o.timeout_ms)) return wrong;
  if (auto wrong = read_surroundings(w)) return wrong;
  if (auto wrong = read_resources(w)) return wrong;
  if (Status right = settle_cpus(*o.mpi, o.resources); !right) return Usage{right.error().message};
  if (!w.printed.empty() && !o.dry_run) return Usage{"-o needs --dry-run"};
  if (o.resources.placement.empty()) o.resources.placement = "spread";
  o.output = read_output(w.printed);
  o.exported.for_mpi = true;
  if (auto wrong = read_passed(w.passed, o)) return wrong;
  if (auto wrong = read_command(w.rest, tail, o.command)) return wrong;
  if (o.command.empty()) return Usage{"needs a program: muster mpirun -N 4 -- CMD ARG..."};
  return std::nullopt;
}

}  // namespace

Verb mpirun_verb() {
  auto w = std::make_shared<MpirunWords>();
  FlagRows rows = {
      {"command", "-- CMD ARG...", "The MPI program, after --", &w->rest},
      {"-N,--hosts", "N",
       "Number of hosts: pods that start together, each with --slots ranks (default: as many as "
       "--np needs)",
       &w->o.completions, whole(1, kNumberMax)},
      {"--slots,--ppn,--npernode", "S", "Ranks on each host (default); also -ppn and -npernode",
       &w->wishes.slots, whole(1, core::kMpiSlotsMax)},
      {"--cpus-per-rank", "C",
       "CPUs of each rank, also its OMP_NUM_THREADS, unless that is set; a host requests those of "
       "its slots (default: 1, without OMP_NUM_THREADS)",
       &w->wishes.cpus_per_rank, whole(1, kCpusPerRankMax)},
      {"-n,--np", "P", "Number of ranks (default: one for each slot of each host); also -np",
       &w->wishes.ranks, whole(1, kNumberMax)},
      {"-x", "NAME[=VALUE]", "Pass a variable of this shell to the ranks, or set one; repeatable",
       &w->passed},
      {"--bind-to", "WHAT", "What the launcher binds each rank to, such as core, socket or none",
       &w->wishes.bind_to},
      {"--map-by", "WHAT", "How the launcher distributes the ranks, such as slot, node or socket",
       &w->wishes.map_by},
      {"--mca", "NAME VALUE", "Set a parameter of Open MPI; repeatable", &w->wishes.mca, kAnything,
       kSeveral},
      {"--oversubscribe", "",
       "Allow more ranks than slots, and request no CPUs for them: hosts then share CPUs",
       &w->wishes.oversubscribe},
      {"--tag-output", "", "Prefix each line of output with its rank", &w->wishes.tag_output},
      {"--mpi", "MPI",
       "Which MPI starts the program: openmpi, mpich (or another with its launcher, Hydra), "
       "or auto (default auto: whichever mpirun is)",
       &w->mpi, one_of({"auto", "openmpi", "mpich"})}};
  add_command_rows(rows, *w, "Retries of the whole MPI run (default 0)");
  rows.push_back({"--output", "HOW",
                  "Output of pods: plain, tag (each line with its index), none, or a file for each "
                  "pod, such as logs/%j-%i.out (default plain)",
                  &w->shown});
  add_host_rows(rows, *w);
  add_run_rows(rows, *w);
  rows.push_back({"--detach", "",
                  "On Ctrl-C, SIGTERM or --timeout, leave the ranks running on the coordinator",
                  &w->wishes.detach});
  add_dry_run_rows(
      rows, *w, "Short for --output; with --dry-run, yaml (the default) or json for the manifest");
  return {
      .title = {"Jobs", "mpirun", "Run an MPI program on several hosts, here or on a coordinator"},
      .rows = std::move(rows),
      .asks = {&w->o.target, "--namespace"},
      .footer =
          "Examples:\n  muster mpirun -N 4 --slots 8 -- ./solver input.dat\n"
          "  muster mpirun -np 2 -- ./solver\n"
          "  muster mpirun -N 2 --mpi mpich -x OMP_NUM_THREADS=4 --tag-output -- ./solver\n"
          "  muster mpirun -N 2 --mca btl tcp,self --bind-to core --time 2h -- ./solver "
          "<input.dat\n"
          "Each host is an index of a job, to which --cpus, --mem and so on apply. It requests a "
          "CPU for each slot, and waits until that many are free on its node. Hosts are on "
          "different nodes where possible, unless --placement pack is given.\n"
          "CMD runs as typed, with this shell's environment and directory, but without what "
          "another launcher or batch system has set (SLURM_*, PBS_*, LSB_*, SGE_*, PMI_*, PMIX_*, "
          "OMPI_*, HYDRA_*). Settings of MPI itself (OMPI_MCA_*, UCX_*, FI_*, I_MPI_*) are passed, "
          "unless they say how ranks are started (OMPI_MCA_plm_rsh_agent and the like).\n"
          "What is piped to stdin is read to its end first; rank 0 gets it.\n"
          "Ctrl-C, SIGTERM and --timeout end the ranks.\n"
          "Exit codes: 0 Complete, 124 --timeout expired, 130 interrupted; otherwise that of the "
          "launcher, or 1.",
      .takes_command = true,
      .one_dash = true,
      .refuses = {{"-H", "--host", "--hostfile", "--machinefile", "--machine"},
                  "muster chooses the hosts; -N says how many, and --slots how many ranks each "
                  "gets"},
      .finish = [w](const Given& given) -> Judged {
        return judged(read_mpirun(*w, given.tail), w->o);
      }};
}

}  // namespace muster::cli
