#include "agent/link/pool_name.hpp"

#include "core/spec/values/names.hpp"
#include "trust/tls/identity.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace muster::agent {
namespace {

std::string name(const std::map<std::string, std::string>& variables,
                 const std::string& host = "c01") {
  std::string found = pool_node_name("hpc", host, [&variables](const char* one) -> const char* {
    const auto it = variables.find(one);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
  EXPECT_TRUE(tls::is_in_pool(found, "hpc")) << found;
  EXPECT_TRUE(core::dns_subdomain_errors(found).empty()) << found;
  return found;
}

TEST(PoolNameTest, SaysWhichJobAndRankItIs) {
  EXPECT_EQ(name({{"SLURM_JOB_ID", "4711"}, {"SLURM_PROCID", "3"}}), "hpc-4711-3");
  EXPECT_EQ(name({{"FLUX_JOB_ID", "f2jK3aB"}, {"FLUX_TASK_RANK", "0"}}), "hpc-f2jk3ab-0");
  EXPECT_EQ(name({{"PBS_JOBID", "123[4].head"}, {"PBS_NODENUM", "1"}}), "hpc-123-4--head-1");
  EXPECT_EQ(name({}), "hpc-c01");
  EXPECT_EQ(name({{"PMI_RANK", "2"}}), "hpc-c01-2");
}

TEST(PoolNameTest, MpirunsRankIsNotThatOfItsDaemon) {
  EXPECT_EQ(name({{"SLURM_JOB_ID", "4711"}, {"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_RANK", "5"}}),
            "hpc-4711-5");
}

TEST(PoolNameTest, AnyTextMakesAName) {
  EXPECT_EQ(name({}, "C01.Example.com."), "hpc-c01-example-com");
  EXPECT_EQ(name({{"SLURM_JOB_ID", "--"}}), "hpc-c01");
  name({{"SLURM_JOB_ID", std::string(400, 'x')}}, std::string(64, 'y'));
}

}  // namespace
}  // namespace muster::agent
