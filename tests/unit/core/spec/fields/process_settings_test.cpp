// Niceness, umask and soft limits: which annotations are accepted, what they mean, and that what a
// client writes is read back.
#include "core/spec/fields/process_settings.hpp"

#include "core/spec/values/rlimits.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

// What is wrong with this annotation; empty: nothing.
std::string wrong(std::string_view key, const std::string& value, const JobSpec& spec = {}) {
  Violations found;
  validate_process_settings({{std::string(key), value}}, spec, found);
  return found.empty() ? "" : found.list().front().detail;
}

TEST(ProcessSettings, ReadsEachAnnotation) {
  const ProcessSettings read =
      read_process_settings({{"muster.dev/nice", "19"},
                             {"muster.dev/umask", "027"},
                             {"muster.dev/ulimits", " stack=64M  core=0 "}});
  EXPECT_EQ(read.nice, 19);
  EXPECT_EQ(read.umask, 027u);
  EXPECT_EQ(read.soft_limits, (std::map<std::string, uint64_t>{{"core", 0}, {"stack", 64u << 20}}));
  EXPECT_EQ(read_process_settings({}), ProcessSettings());
}

TEST(ProcessSettings, AreReadBackAsTheyWereWritten) {
  const ProcessSettings settings{
      .nice = 3,
      .umask = 0,
      .soft_limits = {{"as", kUnlimited}, {"core", 0}, {"fsize", 1025}, {"stack", 3ull << 40}}};
  StringMap annotations;
  write_process_settings(settings, annotations);
  EXPECT_EQ(annotations.at("muster.dev/umask"), "0000");
  EXPECT_EQ(annotations.at("muster.dev/ulimits"), "as=unlimited core=0 fsize=1025 stack=3T");
  EXPECT_EQ(read_process_settings(annotations), settings);
  StringMap none;
  write_process_settings({}, none);
  EXPECT_TRUE(none.empty());
}

TEST(ProcessSettings, RejectsWhatItCannotMean) {
  for (const char* value : {"0", "19"}) EXPECT_EQ(wrong(kNiceKey, value), "") << value;
  for (const char* value : {"-1", "20", "", " 1", "1x", "1.5", "99999999999"})
    EXPECT_NE(wrong(kNiceKey, value).find("must be a whole number, 0 to 19"), std::string::npos)
        << value;
  for (const char* value : {"0", "0777", "22"}) EXPECT_EQ(wrong(kUmaskKey, value), "") << value;
  for (const char* value : {"1000", "8", "", "u=rwx", "-1"})
    EXPECT_NE(wrong(kUmaskKey, value).find("must be an octal number, 0 to 0777"), std::string::npos)
        << value;
  for (const char* value : {"", "as=1", "nofile=64 stack=unlimited", "cpu=16777215T"})
    EXPECT_EQ(wrong(kUlimitsKey, value), "") << value;
  const std::pair<const char*, const char*> limits[] = {
      {"rss=1", "must be NAME=VALUE with one of as, core, cpu"},
      {"stack", "must be stack=VALUE, `unlimited` or a number"},
      {"stack=", "must be stack=VALUE"},
      {"stack=1KB", "must be stack=VALUE"},
      {"stack=8:9", "must be stack=VALUE"},
      {"cpu=16777216T", "must be cpu=VALUE"},
      {"core=18446744073709551615", "must be core=VALUE"},
      {"nofile=63", "too few to start a process; must be at least 64"},
      {"core=0 core=1", "`core=1`: set twice"}};
  for (const auto& [value, why] : limits)
    EXPECT_NE(wrong(kUlimitsKey, value).find(why), std::string::npos)
        << value << ": " << wrong(kUlimitsKey, value);
}

TEST(ProcessSettings, FilesMustBeApartFromEachOther) {
  JobSpec spec;
  spec.completion_mode = "Indexed";
  spec.completions = 3;
  spec.pod.containers.resize(1);
  const std::pair<const char*, const char*> cases[] = {
      {"/logs/%j-%i.out", ""},
      {"/logs/%t", ""},
      {"/dev/null", ""},
      {"logs/%i", "must be an absolute path"},
      {"/logs/%j.out", "is the same file for all indexes; add %i"},
      {"/logs/%x", "`%x` in /logs/%x is unknown"},
      {"/logs/", "names a directory"}};
  for (const auto& [value, why] : cases) {
    EXPECT_NE(wrong(kStdoutKey, value, spec).find(why), std::string::npos) << value;
    EXPECT_EQ(wrong(kStderrKey, value, spec).empty(), *why == 0) << value;
  }
  spec.completions = 1;
  EXPECT_EQ(wrong(kStdoutKey, "/logs/%j.out", spec), "");
  spec.pod.containers.resize(2);
  EXPECT_NE(wrong(kStdoutKey, "/logs/%j.out", spec).find("several containers"), std::string::npos);
}

TEST(ProcessSettings, OfAPodNameItsFiles) {
  const ProcessSettings of_job{.nice = 3, .out = "/l/%j-%t-%i", .err = "/l/%n.%p"};
  OutputPod pod{.job = "j", .pod = "j-7-x", .node = "c01", .index = 7, .attempt = 0, .task = "40"};
  ProcessSettings first = for_pod(of_job, pod);
  EXPECT_EQ(first, (ProcessSettings{.nice = 3, .out = "/l/j-40-7", .err = "/l/c01.j-7-x"}));
  pod.attempt = 1;
  EXPECT_TRUE(for_pod(of_job, pod).append) << "the first attempt's output stays";
  EXPECT_FALSE(for_pod({.out = "/l/%i.%a"}, pod).append) << "a file of its own";
  EXPECT_FALSE(for_pod({.nice = 1}, pod).append);
}

TEST(ProcessSettings, StderrMayJoinStdout) {
  const ProcessSettings joined = read_process_settings({{"muster.dev/stderr", "stdout"}});
  EXPECT_EQ(joined, ProcessSettings{.joined = true});
  EXPECT_FALSE(joined.files());
  StringMap written;
  write_process_settings(joined, written);
  EXPECT_EQ(written, (StringMap{{"muster.dev/stderr", "stdout"}}));
  JobSpec spec;
  spec.pod.containers.resize(2);
  EXPECT_EQ(wrong(kStderrKey, "stdout", spec), "");
  EXPECT_NE(wrong(kStdoutKey, "stdout", spec), "");
}

TEST(ProcessSettings, IgnoresWhatIsMalformed) {
  const ProcessSettings read = read_process_settings({{"muster.dev/nice", "20"},
                                                      {"muster.dev/umask", "9"},
                                                      {"muster.dev/stdout", "out"},
                                                      {"muster.dev/stderr", "/%x"},
                                                      {"muster.dev/ulimits", "core=0 stack"}});
  EXPECT_EQ(read, ProcessSettings());
}

}  // namespace
}  // namespace muster::core
