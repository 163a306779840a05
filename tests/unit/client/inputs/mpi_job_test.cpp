// The job of `muster mpirun`, and what it takes from the shell.
#include "client/inputs/mpi_job.hpp"

#include "client/documents/manifests.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <unistd.h>

namespace muster::cli {
namespace {

Json made(const MpiWishes& wishes, const FoundLauncher& launcher) {
  return mpi_manifest(command_manifest({4, 4, "ring", 1, {"./ring", "$HOME"}, {}, ""}, nullptr),
                      wishes, launcher);
}

std::vector<std::string> words_of(const Json& manifest) {
  return at(manifest, {"spec", "template", "spec"})["containers"][0]["command"];
}

using Words = std::vector<std::string>;

TEST(MpiJob, IsLedByItsFirstIndex) {
  MpiWishes wishes;
  wishes.slots = 8;
  const Json job = made(wishes, {"mpirun", MpiLauncher::unknown});
  EXPECT_EQ(job["metadata"]["annotations"]["muster.dev/mpi"], "auto,slots=8");
  EXPECT_EQ(job["spec"]["completions"], 4);
  EXPECT_EQ(job["spec"]["parallelism"], 4);
  EXPECT_EQ(job["spec"]["backoffLimitPerIndex"], 1);
  EXPECT_EQ(job["spec"]["maxFailedIndexes"], 0);
  EXPECT_EQ(job["spec"]["successPolicy"]["rules"][0]["succeededIndexes"], "0");
  EXPECT_EQ(words_of(job),
            (Words{"$(MUSTER_RUN_DIR)/bin/muster-mpi-entry", "--", "mpirun", "./ring", "$$HOME"}));
}

TEST(MpiJob, PassesFlagsInSyntaxOfEachLauncher) {
  MpiWishes wishes;
  wishes.ranks = 6;
  wishes.passed = {"A", "B"};
  wishes.tag_output = true;
  wishes.kind = core::MpiKind::openmpi;
  const Json open = made(wishes, {"mpirun.openmpi", MpiLauncher::openmpi});
  EXPECT_EQ(open["metadata"]["annotations"]["muster.dev/mpi"], "openmpi,slots=1");
  EXPECT_EQ(words_of(open),
            (Words{"$(MUSTER_RUN_DIR)/bin/muster-mpi-entry", "--", "mpirun.openmpi", "-n", "6",
                   "--tag-output", "-x", "A", "-x", "B", "./ring", "$$HOME"}));
  wishes.kind = core::MpiKind::mpich;
  const Json hydra = made(wishes, {"mpiexec.hydra", MpiLauncher::hydra});
  EXPECT_EQ(hydra["metadata"]["annotations"]["muster.dev/mpi"], "mpich,slots=1");
  EXPECT_EQ(words_of(hydra), (Words{"$(MUSTER_RUN_DIR)/bin/muster-mpi-entry", "--", "mpiexec.hydra",
                                    "-n", "6", "-prepend-rank", "-genv", "A", "$(A)", "-genv", "B",
                                    "$(B)", "./ring", "$$HOME"}));
  // The pods' environment has the variables; an unknown launcher must forward them itself.
  wishes.kind = core::MpiKind::any;
  EXPECT_EQ(words_of(made(wishes, {"mpirun", MpiLauncher::unknown})),
            (Words{"$(MUSTER_RUN_DIR)/bin/muster-mpi-entry", "--", "mpirun", "-n", "6", "./ring",
                   "$$HOME"}));
}

TEST(MpiJob, PassesSettingsOfLaunchers) {
  MpiWishes wishes;
  wishes.bind_to = "core";
  wishes.map_by = "ppr:1:$x";
  wishes.oversubscribe = true;
  const FoundLauncher hydra{"mpiexec.hydra", MpiLauncher::hydra},
      open{"mpirun.openmpi", MpiLauncher::openmpi}, unknown{"mpirun", MpiLauncher::unknown};
  const Words before = {"$(MUSTER_RUN_DIR)/bin/muster-mpi-entry", "--"},
              after = {"./ring", "$$HOME"};
  const auto between = [&](Words words) {
    words.insert(words.begin(), before.begin(), before.end());
    words.insert(words.end(), after.begin(), after.end());
    return words;
  };
  EXPECT_EQ(words_of(made(wishes, hydra)),
            between({"mpiexec.hydra", "-bind-to", "core", "-map-by", "ppr:1:$$x"}));
  EXPECT_TRUE(check_launcher(wishes, hydra));
  EXPECT_NE(check_launcher(wishes, unknown).error().message.find("--bind-to: cannot identify"),
            std::string::npos);
  wishes.mca = {"btl", "tcp"};
  EXPECT_EQ(words_of(made(wishes, open)),
            between({"mpirun.openmpi", "--bind-to", "core", "--map-by", "ppr:1:$$x", "--mca", "btl",
                     "tcp", "--oversubscribe"}));
  EXPECT_TRUE(check_launcher(wishes, open));
  EXPECT_NE(check_launcher(wishes, hydra).error().message.find("--mca is a flag of Open MPI"),
            std::string::npos);
  wishes = {};
  EXPECT_TRUE(check_launcher(wishes, unknown));
  wishes.stdin_path = "/in $x";
  EXPECT_EQ(words_of(made(wishes, open)),
            between({"sh", "-c", "exec \"$@\" <\"$0\"", "/in $$x", "mpirun.openmpi"}));
  wishes = {};
  wishes.batch = true;
  EXPECT_EQ(words_of(made(wishes, {})), between({}));
}

TEST(MpiJob, HostsRequestTheCpusOfTheirSlots) {
  const auto settled = [](MpiWishes wishes, const std::string& cpus = "") {
    ResourceWishes resources;
    resources.cpus = cpus;
    const Status right = settle_cpus(wishes, resources);
    if (!right) return right.error().message;
    return resources.cpus + " " + std::to_string(threads_of_rank(wishes, resources));
  };
  MpiWishes wishes;
  wishes.slots = 8;
  EXPECT_EQ(settled(wishes), "8 0") << "threads are the program's choice";
  EXPECT_EQ(settled(wishes, "16"), "16 2");
  EXPECT_EQ(settled(wishes, "4"), "4 1");
  wishes.cpus_per_rank = 3;
  EXPECT_EQ(settled(wishes), "24 3");
  EXPECT_EQ(settled(wishes, "16"),
            "--cpus-per-rank and --cpus are mutually exclusive: --cpus is for each host");
  wishes.oversubscribe = true;
  EXPECT_EQ(settled(wishes), "--cpus-per-rank and --oversubscribe are mutually exclusive");
  wishes.cpus_per_rank = 0;
  EXPECT_EQ(settled(wishes), " 0") << "hosts share what there is";
  EXPECT_EQ(settled(wishes, "2"), "2 1");
  wishes = {};
  wishes.slots = core::kMpiSlotsMax;
  wishes.cpus_per_rank = kCpusPerRankMax;
  EXPECT_EQ(settled(wishes), "16777216 4096");
}

TEST(MpiJob, RecognizesLaunchersByVersionText) {
  EXPECT_EQ(launcher_of("mpirun (Open MPI) 4.1.4\n"), MpiLauncher::openmpi);
  EXPECT_EQ(launcher_of("mpirun.real (OpenRTE) 2.1.1\n"), MpiLauncher::openmpi);
  EXPECT_EQ(launcher_of("HYDRA build details:\n    Version:  4.0.2\n"), MpiLauncher::hydra);
  EXPECT_EQ(launcher_of("Intel(R) MPI Library for Linux* OS, Version 2021.9\n"),
            MpiLauncher::hydra);
  EXPECT_EQ(launcher_of("slurm 22.05\n"), MpiLauncher::unknown);
  EXPECT_EQ(launcher_of(""), MpiLauncher::unknown);
}

TEST(MpiJob, ExportsNoVariablesOfOtherLaunchers) {
  const char* const shell[] = {"PATH=/bin",
                               "SLURM_JOB_ID=7",
                               "PBS_NODEFILE=/n",
                               "LSB_HOSTS=a",
                               "SGE_ROOT=/s",
                               "PMI_RANK=3",
                               "PMIX_RANK=3",
                               "OMPI_COMM_WORLD_RANK=0",
                               "OMPI_MCA_a=b",
                               "HYDRA_HOST_FILE=f",
                               "SLURMISH=yes",
                               "OMPI_ALLOW_RUN_AS_ROOT=1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                               nullptr};
  Export all;
  EXPECT_EQ(exported(shell, all, "")->size(), 13u);
  all.for_mpi = true;
  Variables expected = {{"PATH", "/bin"}, {"SLURMISH", "yes"}};
  if (geteuid() == 0) {
    expected["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    expected["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
  EXPECT_EQ(*exported(shell, all, ""), expected);
  expected["OMPI_MCA_btl"] = "tcp";
  expected["UCX_TLS"] = "tcp";
  const char* settings[] = {"PATH=/bin", "SLURMISH=yes", "OMPI_MCA_btl=tcp", "UCX_TLS=tcp",
                            "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                            // They would win over what muster sets.
                            "OMPI_MCA_plm_rsh_agent=ssh", "OMPI_MCA_orte_default_hostfile=f",
                            "PRTE_MCA_plm_ssh_agent=ssh", "I_MPI_HYDRA_BOOTSTRAP=slurm", nullptr,
                            nullptr};
  EXPECT_EQ(*exported(settings, all, ""), expected);
  for (const char* name : {"OMPI_COMM_WORLD_RANK=1", "MUSTER_RUN_DIR=/d"}) {
    settings[std::size(settings) - 2] = name;  // a process of another job
    EXPECT_FALSE(exported(settings, all, "")->contains("OMPI_MCA_btl")) << name;
  }
  all.names = {"OMPI_MCA_a"};  // named with -x
  EXPECT_EQ(exported(shell, all, "")->at("OMPI_MCA_a"), "b");
}

}  // namespace
}  // namespace muster::cli
