#include "cli/verbs/setup/keeper_variables.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>

namespace muster::cli {
namespace {

using namespace std::string_literals;

TEST(KeeperVariables, AreThoseOfItsEnvironment) {
  using Found = std::map<std::string, std::string>;
  EXPECT_EQ(keeper_variables_in(""), Found{});
  EXPECT_EQ(keeper_variables_in("PATH=/bin\0MUSTER_KEEPER_UMASK=022\0MUSTER_KEEPER_LIMITS=A=1\0"s),
            (Found{{"MUSTER_KEEPER_UMASK", "022"}, {"MUSTER_KEEPER_LIMITS", "A=1"}}));
  EXPECT_EQ(keeper_variables_in("MUSTER_KEEPER_PAM=\0MUSTER_KEEPER_NODE=n"s),
            (Found{{"MUSTER_KEEPER_PAM", ""}, {"MUSTER_KEEPER_NODE", "n"}}));
}

TEST(KeeperVariables, OfAFileAreReadAsSystemdDoes) {
  const std::string path = testing::TempDir() + "muster-keeper-" + std::to_string(getpid());
  EXPECT_TRUE(read_variables_file(path)->empty()) << "it does not exist";
  std::ofstream(path) << "# MUSTER_KEEPER_NODE=x\n; MUSTER_KEEPER_NODE=y\n\n"
                      << "MUSTER_KEEPER_LIMITS=\"NPROC=10 CORE=0\"\n"
                      << "MUSTER_KEEPER_PAM='muster'  \n MUSTER_KEEPER_UMASK=077\n"
                      << "MUSTER_KEEPER_UMASK=022\nMUSTER_KEEPER_PERMIT_KEY=\nPATH=/bin\n";
  auto read = read_variables_file(path);
  ASSERT_TRUE(read.ok());
  std::string all;
  for (const auto& [name, value] : *read)
    all += name.substr(14) + "=" + value.text + value.from.substr(path.size()) + " ";
  EXPECT_EQ(all, "LIMITS=NPROC=10 CORE=0:4 PAM=muster:5 PERMIT_KEY=:8 UMASK=022:7 ");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace muster::cli
