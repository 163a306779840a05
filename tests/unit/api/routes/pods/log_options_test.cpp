// Parameters of a log: what Kubernetes accepts, and what it answers to the rest.
#include "api/routes/pods/log_options.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

constexpr Millis kAskedAt = 1'700'000'000'500;

Result<LogOptions> options_of(const std::string& query) {
  return read_log_options(*Url::parse("/log?" + query), kAskedAt);
}

TEST(LogOptions, AreRead) {
  const auto plain = options_of("");
  ASSERT_TRUE(plain.ok());
  EXPECT_TRUE(plain->out && plain->err && !plain->stream_given && !plain->follow &&
              !plain->timestamps);
  EXPECT_FALSE(plain->tail_lines || plain->limit_bytes);
  EXPECT_EQ(plain->since, 0);
  const auto stern = options_of("container=main&follow=true&sinceSeconds=172800&timestamps=true");
  ASSERT_TRUE(stern.ok());
  EXPECT_TRUE(stern->follow && stern->timestamps);
  EXPECT_EQ(stern->container, "main");
  EXPECT_EQ(stern->since, kAskedAt - 172'800'000);
  const auto all = options_of(
      "tailLines=100&limitBytes=%2B7&previous=1&sinceTime=2023-11-14T22:13:20Z&stream=Stderr");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->tail_lines, 100);
  EXPECT_EQ(all->limit_bytes, 7);
  EXPECT_TRUE(all->previous && all->stream_given && all->err && !all->out);
  EXPECT_EQ(all->since, 1'700'000'000'000);
}

TEST(LogOptions, SinceMayLieBeforeAllTimes) {
  for (const char* query : {"sinceSeconds=9223372036854775807", "sinceTime=1969-01-01T00:00:00Z",
                            "sinceTime=null", "sinceTime="}) {
    const auto options = options_of(query);
    ASSERT_TRUE(options.ok()) << query;
    EXPECT_EQ(options->since, 0) << query;
  }
}

TEST(LogOptions, FlagsAreFalseOnlyIfTheySaySo) {
  for (const char* text : {"true", "1", "T", "yes", ""})
    EXPECT_TRUE(options_of("follow=" + std::string(text))->follow) << text;
  for (const char* text : {"false", "False", "0"})
    EXPECT_FALSE(options_of("follow=" + std::string(text))->follow) << text;
}

TEST(LogOptions, WhatCannotBeReadIsABadRequest) {
  struct Row {
    const char *query, *message;
  };
  for (const Row& row :
       {Row{"tailLines=x", R"(strconv.ParseInt: parsing "x": invalid syntax)"},
        {"limitBytes=", R"(strconv.ParseInt: parsing "": invalid syntax)"},
        {"sinceSeconds=9223372036854775808",
         R"(strconv.ParseInt: parsing "9223372036854775808": value out of range)"},
        {"tailLines=--1", R"(strconv.ParseInt: parsing "--1": invalid syntax)"},
        {"sinceTime=noon", R"(parsing time "noon" as "2006-01-02T15:04:05Z07:00")"}}) {
    const auto options = options_of(row.query);
    ASSERT_FALSE(options.ok()) << row.query;
    EXPECT_TRUE(options.error().violations.empty()) << row.query;
    EXPECT_EQ(options.error().message, row.message);
  }
}

TEST(LogOptions, WrongValuesAreViolations) {
  struct Row {
    const char *query, *path, *detail;
  };
  for (const Row& row : {Row{"tailLines=-1", "tailLines", "must be greater than or equal to 0"},
                         {"limitBytes=0", "limitBytes", "must be greater than 0"},
                         {"limitBytes=-1", "limitBytes", "must be greater than 0"},
                         {"sinceSeconds=0", "sinceSeconds", "must be greater than 0"},
                         {"sinceSeconds=1&sinceTime=2023-11-14T22:13:20Z", "",
                          "at most one of `sinceTime` or `sinceSeconds` may be specified"},
                         {"stream=both", "stream", R"("All", "Stdout", "Stderr")"}}) {
    const auto options = options_of(row.query);
    ASSERT_FALSE(options.ok()) << row.query;
    ASSERT_EQ(options.error().violations.size(), 1u) << row.query;
    EXPECT_EQ(options.error().violations[0].path, row.path);
    EXPECT_NE(options.error().violations[0].detail.find(row.detail), std::string::npos)
        << options.error().violations[0].detail;
  }
  EXPECT_EQ(options_of("tailLines=-1&limitBytes=0").error().violations.size(), 2u);
}

}  // namespace
}  // namespace muster::api
