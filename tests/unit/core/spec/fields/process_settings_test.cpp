// Niceness, umask and soft limits: which annotations are accepted, what they mean, and that what a
// client writes is read back.
#include "core/spec/fields/process_settings.hpp"

#include "core/spec/values/rlimits.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

// What is wrong with this annotation; empty: nothing.
std::string wrong(std::string_view key, const std::string& value) {
  Violations found;
  validate_process_settings({{std::string(key), value}}, found);
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

TEST(ProcessSettings, IgnoresWhatIsMalformed) {
  const ProcessSettings read = read_process_settings({{"muster.dev/nice", "20"},
                                                      {"muster.dev/umask", "9"},
                                                      {"muster.dev/ulimits", "core=0 stack"}});
  EXPECT_EQ(read, ProcessSettings());
}

}  // namespace
}  // namespace muster::core
