#include "base/process/exposition.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Exposition, MetricsAreTextForPrometheus) {
  Exposition out;
  out.gauge("a", "One.", 1.5);
  out.metric("b", "counter", "Some.").value(2, "x=\"y\"").value(3e9, "x=\"z\"");
  EXPECT_EQ(std::move(out).text(),
            "# HELP a One.\n# TYPE a gauge\na 1.5\n"
            "# HELP b Some.\n# TYPE b counter\nb{x=\"y\"} 2\nb{x=\"z\"} 3000000000\n");
}

TEST(Exposition, BucketsOfAHistogramAddUp) {
  DurationBuckets all;
  for (const double seconds : {0.0001, 0.00011, 0.003, 5.0}) all.add(seconds);
  Exposition out;
  out.histogram("s", "Seconds.", all);
  const std::string text = std::move(out).text();
  for (const char* line :
       {"# TYPE s histogram\n", "s_bucket{le=\"0.0001\"} 1\n", "s_bucket{le=\"0.0002\"} 2\n",
        "s_bucket{le=\"0.0016\"} 2\n", "s_bucket{le=\"0.0032\"} 3\n", "s_bucket{le=\"3.2768\"} 3\n",
        "s_bucket{le=\"+Inf\"} 4\n", "s_sum 5.00321\n", "s_count 4\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace muster
