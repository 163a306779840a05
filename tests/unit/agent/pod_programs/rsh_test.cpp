// How muster-rsh parses the calls of launchers.
#include "agent/pod_programs/rsh.hpp"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

std::string parsed(const std::vector<std::string>& words) {
  const auto line = parse_rsh(words);
  return line ? line->host + " | " + line->command : "-";
}

TEST(ParseRsh, ReadsCallsOfOpenMpiAndHydra) {
  // Open MPI 4.1, which splits a shell line into words.
  EXPECT_EQ(parsed({"train-1", "orted", "-mca", "ess", "\"env\"", "-mca", "orte_hnp_uri",
                    "\"123.0;tcp://10.0.0.1:4\""}),
            "train-1 | orted -mca ess \"env\" -mca orte_hnp_uri \"123.0;tcp://10.0.0.1:4\"");
  EXPECT_EQ(parsed({"train-1", "( test ! -r ./.profile || . ./.profile;", "orted", ")"}),
            "train-1 | ( test ! -r ./.profile || . ./.profile; orted )");
  // Hydra 4.0, as ssh and as rsh.
  EXPECT_EQ(parsed({"-x", "train-1", "\"/usr/bin/hydra_pmi_proxy\"", "--control-port", "h:1",
                    "--proxy-id", "1"}),
            "train-1 | \"/usr/bin/hydra_pmi_proxy\" --control-port h:1 --proxy-id 1");
  EXPECT_EQ(parsed({"train-1", "hydra_pmi_proxy", "-x"}), "train-1 | hydra_pmi_proxy -x");
}

TEST(ParseRsh, SkipsOptionsOfSsh) {
  EXPECT_EQ(parsed({"-q", "-o", "StrictHostKeyChecking=no", "-p", "22", "h", "a"}), "h | a");
  EXPECT_EQ(parsed({"-oBatchMode=yes", "-p22", "h", "a"}), "h | a");
  EXPECT_EQ(parsed({"-xqTo", "V", "h", "a"}), "h | a");
  EXPECT_EQ(parsed({"-n", "-l", "me", "h", "a", "-l", "b"}), "h | a -l b");
  EXPECT_EQ(parsed({"--", "h", "a"}), "h | a");
  EXPECT_EQ(parsed({"me@h", "a"}), "h | a");
  EXPECT_EQ(parsed({"h", "a", "", "b"}), "h | a  b");
}

TEST(ParseRsh, RejectsCallsWithoutHostOrCommand) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"h"},
                                                {"-x"},
                                                {"-x", "h"},
                                                {"-o", "V"},
                                                {"me@", "a"},
                                                {"h", ""},
                                                {"-z", "h", "a"},
                                                {"--what", "h", "a"}})
    EXPECT_EQ(parsed(words), "-");
}

}  // namespace
}  // namespace muster::agent
