// What the batch systems' commands are asked, and what their output means.
#include "cli/verbs/allocate/engines.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::cli::allocate {
namespace {

Request request() {
  return {.pool = "p",
          .time_ms = 90 * 60'000,
          .options = {"--partition=short", "-c 4; touch /tmp/x"},
          .dir = "/home/ada/a dir",
          .executable = "/opt/muster",
          .coordinator = "head:7444"};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "|") + word;
  return text;
}

std::string shown(const Result<std::vector<Allocation>>& read) {
  if (!read) return read.error().message;
  std::string text;
  for (const Allocation& one : *read)
    text += one.id + " " +
            (one.phase == Phase::queued    ? "queued"
             : one.phase == Phase::running ? "running"
                                           : "ended") +
            " " + one.state + " " + (one.started_ms ? std::to_string(*one.started_ms) : "-") + " " +
            (one.ended_ms ? std::to_string(*one.ended_ms) : "-") + "\n";
  return text;
}

TEST(EngineTest, WordsOfTheUserStayWords) {
  EXPECT_EQ(joined(engine_of("slurm")->submit(request()).words),
            "sbatch|--parsable|--job-name=muster-p|--nodes=1|--time=90|--no-requeue|"
            "--output=/home/ada/a dir/%j.log|--partition=short|-c 4; touch /tmp/x");
  EXPECT_EQ(joined(engine_of("pbs")->submit(request()).words),
            "qsub|-N|muster-p|-l|walltime=01:30:00|-r|n|-j|oe|-o|/home/ada/a dir/|"
            "--partition=short|-c 4; touch /tmp/x");
  const std::string flux = joined(engine_of("flux")->submit(request()).words);
  EXPECT_NE(flux.find("sh|--job-name=muster-p|--nodes=1|--time-limit=5400s|"
                      "--output=/home/ada/a dir/{{id.dec}}.log|--partition=short|-c 4; touch "
                      "/tmp/x|--|/bin/sh|-c|#!/bin/sh\n"),
            std::string::npos)
      << flux;
}

TEST(EngineTest, TheScriptHasNoSecretAndKnowsItsEnd) {
  Request with = request();
  with.with_token = true;
  with.agent_flags = {"--label", "a=$(b)"};
  const std::string script = engine_of("slurm")->submit(with).input;
  for (const char* part :
       {"node=p-${SLURM_JOB_ID}\n", "token='/home/ada/a dir'/$node.token\n", "--label 'a=$(b)'\n",
        "[ -n \"${SLURM_JOB_END_TIME:-}\" ] || set -- \"$@\" --until +5370s\n",
        "cpus=${SLURM_CPUS_ON_NODE:-}\n", "/opt/muster agent \"$@\" &\n"})
    EXPECT_NE(script.find(part), std::string::npos) << part << script;
  EXPECT_EQ(engine_of("slurm")->submit(request()).input.find("token"), std::string::npos);
}

TEST(EngineTest, IdsOfNewAllocations) {
  struct Case {
    const char *engine, *output, *id;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"slurm", "17\n", "17"},
           {"slurm", "sbatch: warning: something\n17;cluster\n", "17"},
           {"slurm", "Submitted\n", "sbatch --parsable printed no number: Submitted"},
           {"flux", "1234567\n", "1234567"},
           {"flux", "f7\n", "flux submit printed no id: f7"},
           {"pbs", "17.server\n", "17.server"},
           {"pbs", "", "qsub printed no id: "}}) {
    const auto read = engine_of(one.engine)->submitted(one.output);
    EXPECT_EQ(read ? *read : read.error().message, one.id) << one.output;
  }
}

TEST(EngineTest, ListsOfAllocations) {
  EXPECT_EQ(shown(engine_of("slurm")->listed("2|PENDING|1795944472|1795948072|Priority\n"
                                             "squeue: warning\n"
                                             "1|RUNNING|1795944172|1795944472|None\n"
                                             "3|COMPLETING|1795944172|1795944200|None\n"
                                             "4|FAILED|1795944172|1795944174|NonZeroExitCode\n"
                                             "5|CANCELLED|N/A|1795944174|None\n")),
            "2 queued PENDING Priority - -\n"
            "1 running RUNNING 1795944172000 -\n"
            "3 running COMPLETING 1795944172000 -\n"
            "4 ended FAILED NonZeroExitCode 1795944172000 1795944174000\n"
            "5 ended CANCELLED - 1795944174000\n");
  EXPECT_EQ(shown(engine_of("flux")->listed("11|SCHED||0.0|0.0\n12|RUN||1795944172.25|\n"
                                            "13|INACTIVE|FAILED|1795944172.5|1795944174.5\n")),
            "11 queued SCHED - -\n12 running RUN 1795944172250 -\n"
            "13 ended FAILED 1795944172500 1795944174500\n");
  EXPECT_EQ(
      shown(engine_of("pbs")->listed(R"({"Jobs":{"1.s":{"job_state":"Q"},"2.s":{"job_state":"R"},)"
                                     R"("3.s":{"job_state":"F","Exit_status":1}}})")),
      "1.s queued Q - -\n2.s running R - -\n3.s ended exit status 1 - -\n");
  EXPECT_EQ(shown(engine_of("pbs")->listed("\n")), "");
  EXPECT_EQ(shown(engine_of("pbs")->listed("{\"Jobs\"")),
            "qstat -F json printed no JSON: {\"Jobs\"");
}

TEST(EngineTest, OptionsThatAreOurs) {
  const auto ours = engine_of("slurm")->own_options();
  for (const char* option : {"--time=5", "--time", "-t5", "-t", "-N2", "--array=1-3", "-J"})
    EXPECT_NE(option_of_ours({"--partition=x", option}, ours), "") << option;
  for (const char* option : {"--time-min=5", "--exclusive", "-c4", "-p", "--nodelist=a", "x"})
    EXPECT_EQ(option_of_ours({option}, ours), "") << option;
}

TEST(EngineTest, NodesAreNamedAfterAllocations) {
  EXPECT_EQ(node_of("p", "17"), "p-17");
  EXPECT_EQ(node_of("p", "17.server"), "p-17");
}

}  // namespace
}  // namespace muster::cli::allocate
