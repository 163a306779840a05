// The variables of MPI jobs, and the commands of sessions.
#include "core/node/mpi.hpp"

#include "core/node/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::core::node {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

PodTemplate mpi_job(const std::string& mpi, int32_t completions = 3) {
  PodTemplate job;
  job.job = 7;
  job.job_name = "train";
  job.job_uid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";
  job.indexed = true;
  job.completions = completions;
  job.parallelism = completions;
  job.mpi = mpi;
  auto& container = job.containers.emplace_back();
  container.what.name = "main";
  container.what.command = {"mpirun", "$(MUSTER_ATTEMPT)"};
  container.what.env = {{"HYDRA_LAUNCHER", "fork", ""}};
  return job;
}

std::map<std::string, std::string> variables(const std::string& mpi, int32_t completions = 3,
                                             const MpiFacts& facts = {"/run/x", "10.0.0.1",
                                                                      "eth1"}) {
  std::map<std::string, std::string> all;
  set_mpi_variables(mpi_job(mpi, completions), "2", facts,
                    [&all](const std::string& name, const std::string& value) {
                      EXPECT_TRUE(all.emplace(name, value).second) << name;
                    });
  return all;
}

TEST(MpiVariables, EachLauncherGetsItsVariables) {
  const std::map<std::string, std::string> common = {
      {"MUSTER_RUN_DIR", "/run/x"},
      {"MUSTER_RSH_TOKEN_FILE", "/run/x/token"},
      {"MUSTER_LEADER_ADDR", "10.0.0.1"},
      {"MUSTER_LEADER_PORT", std::to_string(leader_port(mpi_job("auto").job_uid))},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", std::to_string(leader_port(mpi_job("auto").job_uid))},
      {"NNODES", "3"},
      {"NODE_RANK", "2"}};
  const std::map<std::string, std::string> openmpi = {
      {"OMPI_MCA_plm_rsh_agent", "/run/x/bin/muster-rsh"},
      {"OMPI_MCA_orte_default_hostfile", "/run/x/hostfile.openmpi"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"PRTE_MCA_plm_ssh_agent", "/run/x/bin/muster-rsh"},
      {"PRTE_MCA_prte_default_hostfile", "/run/x/hostfile.openmpi"},
      {"PRTE_MCA_prte_keep_fqdn_hostnames", "false"}};
  const std::map<std::string, std::string> mpich = {
      {"HYDRA_LAUNCHER", "ssh"},
      {"HYDRA_LAUNCHER_EXEC", "/run/x/bin/muster-rsh"},
      {"HYDRA_HOST_FILE", "/run/x/hostfile.hydra"},
      {"HYDRA_ENV", "none"},
      {"HYDRA_IFACE", "eth1"},
      {"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
      {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/run/x/bin/muster-rsh"},
      {"I_MPI_HYDRA_HOST_FILE", "/run/x/hostfile.hydra"}};
  const std::map<std::string, std::string> ucx = {{"UCX_NET_DEVICES", "eth1"}};
  auto with = [&common](std::initializer_list<std::map<std::string, std::string>> more) {
    auto all = common;
    for (const auto& one : more) all.insert(one.begin(), one.end());
    return all;
  };
  EXPECT_EQ(variables("auto"), with({openmpi, mpich, ucx}));
  EXPECT_EQ(variables("openmpi"), with({openmpi}));
  EXPECT_EQ(variables("mpich,slots=4"), with({mpich, ucx}));
  EXPECT_EQ(variables("mpich,direct"), with({ucx}));
}

TEST(MpiVariables, InterfaceSetsVariablesOfEachLauncher) {
  auto all = variables("auto,iface=ib0");
  EXPECT_EQ(all["OMPI_MCA_oob_tcp_if_include"], "ib0");
  EXPECT_EQ(all["OMPI_MCA_btl_tcp_if_include"], "ib0");
  EXPECT_EQ(all["HYDRA_IFACE"], "ib0");
  EXPECT_EQ(all["UCX_NET_DEVICES"], "ib0");
  EXPECT_FALSE(variables("auto", 3, {"/run/x", "", ""}).contains("HYDRA_IFACE"));
}

// Each node has its own name for it, so Open MPI, which has one setting for all, gets the network.
TEST(MpiVariables, RanksUseTheNetworkOfTheAgents) {
  const MpiFacts facts{"/run/x", "10.0.0.1", "eth1", "10.0.0.0/24"};
  auto all = variables("auto", 3, facts);
  EXPECT_EQ(all["OMPI_MCA_oob_tcp_if_include"], "10.0.0.0/24");
  EXPECT_EQ(all["OMPI_MCA_btl_tcp_if_include"], "10.0.0.0/24");
  EXPECT_EQ(all["UCX_NET_DEVICES"], "eth1");
  all = variables("auto,iface=ib0", 3, facts);
  EXPECT_EQ(all["OMPI_MCA_btl_tcp_if_include"], "ib0");
  EXPECT_EQ(all["UCX_NET_DEVICES"], "ib0");
  // UCX prefers RDMA devices, and this would exclude them.
  for (const char* mpi : {"auto", "auto,iface=ib0"})
    EXPECT_FALSE(variables(mpi, 3, {"/run/x", "10.0.0.1", "eth1", "10.0.0.0/24", true})
                     .contains("UCX_NET_DEVICES"));
}

TEST(MpiVariables, UnknownLeaderAddressIsOmitted) {
  const auto all = variables("auto", 3, {"/run/x", "", "eth1"});
  EXPECT_FALSE(all.contains("MASTER_ADDR"));
  EXPECT_FALSE(all.contains("MUSTER_LEADER_ADDR"));
  EXPECT_TRUE(all.contains("MASTER_PORT"));
}

// Open MPI itself starts the daemons of at most 64 hosts.
TEST(MpiVariables, RoutedRadixIsSetAbove64Hosts) {
  EXPECT_FALSE(variables("auto", 64).contains("OMPI_MCA_routed_radix"));
  EXPECT_EQ(variables("auto", 65)["OMPI_MCA_routed_radix"], "65");
}

TEST(MpiFactsChecked, DropsInvalidAddressesAndInterfaces) {
  const MpiFacts good{"/run/x", "fd00::12", "eth0.5"};
  EXPECT_EQ(good.checked().leader_address, "fd00::12");
  EXPECT_EQ(good.checked().iface, "eth0.5");
  EXPECT_EQ(good.checked().run_dir, "/run/x");
  for (const char* bad : {"head", "10.0.0.1 ", "10.0.0.1\n", "$(x)", "10.0.0.1/../x",
                          "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"})
    EXPECT_EQ((MpiFacts{"", bad, ""}).checked().leader_address, "") << bad;
  for (const char* bad : {"eth0 ", "../x", "..", "sixteen-letters!", "abcdefghijklmnop", "a/b"})
    EXPECT_EQ((MpiFacts{"", "", bad}).checked().iface, "") << bad;
}

TEST(LeaderPort, IsBelowTheEphemeralPorts) {
  std::set<uint16_t> seen;
  for (int i = 0; i < 1'000; ++i) {
    const uint16_t port = leader_port("job " + std::to_string(i));
    EXPECT_GE(port, 20'000);
    EXPECT_LT(port, 30'000);
    seen.insert(port);
  }
  EXPECT_GT(seen.size(), 900u);  // they are spread out
  EXPECT_EQ(leader_port("job 1"), leader_port("job 1"));
}

const NodeFacts kNode{"n1", "/home/u", {"PATH=/usr/bin:/bin", "HOME=/home/u"}};
const MpiFacts kFacts{"/run/x", "10.0.0.1", "eth1"};

TEST(MpiCommand, HasTheProgramsOnItsPathAndTheContainersVariablesWin) {
  const auto job = mpi_job("auto");
  const auto command = command_of(job, job.containers[0].what, {7, 1, 2}, kNode, {}, &kFacts);
  ASSERT_TRUE(command.ok());
  EXPECT_THAT(command->env, Contains("PATH=/run/x/bin:/usr/bin:/bin"));
  EXPECT_THAT(command->env, Contains("HYDRA_LAUNCHER=fork"));
  EXPECT_THAT(command->env, Not(Contains("HYDRA_LAUNCHER=ssh")));
  EXPECT_THAT(command->env, Contains("NODE_RANK=1"));
  EXPECT_THAT(command->argv, ElementsAre("mpirun", "2"));
}

TEST(MpiCommand, NamesTheVariablesOfThePod) {
  auto job = mpi_job("auto");
  auto& env = job.containers[0].what.env;
  env.push_back({"SAME", "for all", ""});
  env.push_back({"OUT", "/out/$(JOB_COMPLETION_INDEX)", ""});
  env.push_back({"WHERE", "", "spec.nodeName"});
  env.push_back({"KEY", "", ""});
  env.back().secret = SecretRef{"store", "key"};
  NodeFacts node = kNode;
  node.home = "/home/u";
  const DeviceMap gpus = {{"nvidia.com/gpu", {2}}};
  const auto command = command_of(job, job.containers[0].what, {7, 1, 2}, node, gpus, &kFacts);
  ASSERT_TRUE(command.ok());
  const auto found = std::ranges::find_if(command->env, [](const std::string& one) {
    return one.starts_with("MUSTER_OWN_VARIABLES=");
  });
  ASSERT_NE(found, command->env.end());
  const std::string own = found->substr(found->find('=') + 1) + " ";
  for (const char* name : {"JOB_COMPLETION_INDEX", "MUSTER_POD_NAME", "MUSTER_NODE_NAME",
                           "MUSTER_ATTEMPT", "MUSTER_RUN_DIR", "NODE_RANK", "HOSTNAME", "OUT",
                           "KEY", "WHERE", "CUDA_VISIBLE_DEVICES", "UCX_NET_DEVICES"})
    EXPECT_NE((" " + own).find(std::string(" ") + name + " "), std::string::npos) << name;
  for (const char* name : {"SAME", "PATH", "HOME"})
    EXPECT_EQ((" " + own).find(std::string(" ") + name + " "), std::string::npos) << name;
}

TEST(MpiCommand, ExcludesOfTheContainerReplaceIncludes) {
  const MpiFacts facts{"/run/x", "10.0.0.1", "eth1", "10.0.0.0/24"};
  auto job = mpi_job("auto");
  job.containers[0].what.env.push_back({"OMPI_MCA_btl_tcp_if_exclude", "docker0", ""});
  const auto command = command_of(job, job.containers[0].what, {7, 1, 2}, kNode, {}, &facts);
  ASSERT_TRUE(command.ok());
  EXPECT_THAT(command->env, Not(Contains(testing::StartsWith("OMPI_MCA_btl_tcp_if_include="))));
  EXPECT_THAT(command->env, Contains("OMPI_MCA_oob_tcp_if_include=10.0.0.0/24"));
}

TEST(SessionCommand, HasEnvironmentOfPodAndItsOwnArguments) {
  const auto job = mpi_job("auto");
  const core::Container& container = job.containers[0].what;
  const auto pods = command_of(job, container, {7, 1, 2}, kNode, {}, &kFacts);
  const auto command = session_command(job, container, {7, 1, 2}, kNode, {}, &kFacts,
                                       {"sh", "-c", "echo $(MUSTER_ATTEMPT)"});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->env, pods->env);
  EXPECT_EQ(command->cwd, pods->cwd);
  EXPECT_THAT(command->argv, ElementsAre("sh", "-c", "echo $(MUSTER_ATTEMPT)"));
}

TEST(SessionCommand, LengthIsBounded) {
  const auto job = mpi_job("auto");
  auto refused = [&job](std::vector<std::string> words) {
    const auto command = session_command(job, job.containers[0].what, {7, 1, 2}, kNode, {}, nullptr,
                                         std::move(words));
    return command.ok() ? "" : command.error().message;
  };
  EXPECT_EQ(refused({}), "there is no command");
  EXPECT_EQ(refused({""}), "there is no command");
  EXPECT_EQ(refused({"a", ""}), "");
  EXPECT_THAT(refused({"a", std::string(kStringMax, 'x')}), testing::StartsWith("a word of the"));
  EXPECT_THAT(refused(std::vector<std::string>(40, std::string(kStringMax - 1, 'x'))),
              testing::StartsWith("the command: with it"));
}

}  // namespace
}  // namespace muster::core::node
