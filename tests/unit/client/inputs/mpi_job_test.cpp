// The job of `muster mpirun`, and what it takes from the shell.
#include "client/inputs/mpi_job.hpp"

#include "client/documents/manifests.hpp"

#include <gtest/gtest.h>

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
                               "OMPI_MCA_a=b",
                               "HYDRA_HOST_FILE=f",
                               "SLURMISH=yes",
                               "OMPI_ALLOW_RUN_AS_ROOT=1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                               nullptr};
  Export all;
  EXPECT_EQ(exported(shell, all, "")->size(), 12u);
  all.for_mpi = true;
  Variables expected = {{"PATH", "/bin"}, {"SLURMISH", "yes"}};
  if (geteuid() == 0) {
    expected["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    expected["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
  EXPECT_EQ(*exported(shell, all, ""), expected);
  all.names = {"OMPI_MCA_a"};  // named with -x
  EXPECT_EQ(exported(shell, all, "")->at("OMPI_MCA_a"), "b");
}

}  // namespace
}  // namespace muster::cli
