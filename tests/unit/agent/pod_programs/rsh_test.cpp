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
  EXPECT_EQ(parsed({"h", "-q", "-p", "22", "--", "a", "-n"}), "h | a -n");
  EXPECT_EQ(parsed({"h", "--", "-a"}), "h | -a");
}

TEST(ParseRsh, WithoutCommandRunsShell) {
  EXPECT_EQ(parsed({"h"}), "h | ");
  EXPECT_EQ(parsed({"-x", "h", "-T"}), "h | ");
  EXPECT_FALSE(parse_rsh({"h"})->no_input);
  EXPECT_TRUE(parse_rsh({"-xn", "h", "a"})->no_input);
  EXPECT_TRUE(parse_rsh({"h", "-n", "a"})->no_input);
  EXPECT_FALSE(parse_rsh({"h", "a", "-n"})->no_input);
}

TEST(EnvironmentScript, HasWhatIsNotOfThePod) {
  const char* const environ[] = {"A=it's $(x) and \"y\"",
                                 "EMPTY=",
                                 "JOB_COMPLETION_INDEX=0",
                                 "CUDA_VISIBLE_DEVICES=3",
                                 "CUDA=1",
                                 "PATH=/run/x/bin:/usr/bin:/run/x/bin",
                                 "PWD=/w",
                                 "_=/usr/bin/env",
                                 "PMI_FD=4",
                                 "BASH_FUNC_f%%=() { :; }",
                                 "a.b=1",
                                 "1a=1",
                                 "=odd",
                                 "odd",
                                 nullptr};
  EXPECT_EQ(environment_script(environ, "JOB_COMPLETION_INDEX CUDA_VISIBLE_DEVICES", "/run/x"),
            "export A='it'\\''s $(x) and \"y\"'\n"
            "export EMPTY=''\n"
            "export CUDA='1'\n"
            "export PATH=\"$MUSTER_RUN_DIR/bin\":'/usr/bin:/run/x/bin'\n");
  EXPECT_EQ(environment_script(nullptr, "", "/run/x"), "");
}

TEST(ParseRsh, RejectsCallsWithoutHost) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"-x"},
                                                {"-o", "V"},
                                                {"me@", "a"},
                                                {"h", "-z", "a"},
                                                {"-z", "h", "a"},
                                                {"--what", "h", "a"}})
    EXPECT_EQ(parsed(words), "-");
}

}  // namespace
}  // namespace muster::agent
