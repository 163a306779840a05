// The joblog: columns that scripts rely on.
#include "client/inputs/joblog.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(Joblog, HasTheColumnsOfGnuParallelAndThenOurs) {
  EXPECT_EQ(joblog_header(),
            "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tIndex\t"
            "Attempt\tCounted\tPod\tUsertime\tSystemtime\tPeakmemory\tWaittime\tEndtime\n");
  Joblog log(read_json(
      R"j({"metadata":{"annotations":{"muster.dev/inputs":"a b\nc\n"}},)j"
      R"j("spec":{"template":{"spec":{"containers":[{"command":["./step","--in","$(MUSTER_INPUT)"],)j"
      R"j("args":["$$HOME","$(JOB_COMPLETION_INDEX)","$(OTHER)"]}]}}}})j"));
  EXPECT_EQ(
      log.line(read_json(
          R"j({"index":0,"attempt":1,"node":"c01","pod":"j-0-x2bqd","created":"2026-03-01T11:59:58.150Z","started":"2026-03-01T12:00:00.250Z",
                    "ended":"2026-03-01T12:01:01.500Z","exitCode":137,"signal":9,"counted":"failed",
                    "usage":{"userSeconds":1.2346,"systemSeconds":60.5,"peakMemoryBytes":4096}})j")),
      "1\tc01\t1772366400.250\t61.250\t0\t0\t137\t9\t./step --in 'a b' '$HOME' 0 "
      "'$(OTHER)'\t0\t1\tfailure\tj-0-x2bqd\t1.235\t60.500\t4096\t2.100\t1772366461.500\n");
  EXPECT_EQ(
      log.line(read_json(R"j({"index":1,"attempt":0,"node":"","pod":"p","counted":"ignored"})j")),
      "2\t\t0.000\t0.000\t0\t0\t0\t0\t./step --in c '$HOME' 1 "
      "'$(OTHER)'\t1\t0\tnone\tp\t0.000\t0.000\t0\t0.000\t0.000\n");
  EXPECT_NE(log.line(read_json(R"j({"index":1,"counted":"cancelled"})j")).find("\tcancelled\t"),
            std::string::npos);
}

TEST(Joblog, EscapesCommandToOneLine) {
  Joblog log(read_json(
      R"j({"spec":{"template":{"spec":{"containers":[{"command":["sh","-c","a\tb\nc"]}]}}}})j"));
  const std::string line = log.line(read_json(R"j({"pod":"j-abcde","counted":"succeeded"})j"));
  EXPECT_EQ(line,
            "1\t\t0.000\t0.000\t0\t0\t0\t0\tsh -c "
            "'a\\tb\\nc'\t-\t0\tsuccess\tj-abcde\t0.000\t0.000\t0\t0.000\t0.000\n");
}

}  // namespace
}  // namespace muster::cli
