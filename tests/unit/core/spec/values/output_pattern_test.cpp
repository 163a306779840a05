// Patterns of --output: what they expand to, and which ones are refused.
#include "core/spec/values/output_pattern.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

const OutputPod kPod = {
    .job = "sweep", .pod = "sweep-7-x2bqd", .node = "c01", .index = 7, .attempt = 2, .task = "40"};

TEST(OutputPattern, ExpandsPlaceholders) {
  const std::pair<const char*, const char*> cases[] = {
      {"logs/%j-%i.out", "logs/sweep-7.out"},
      {"%j.%i.%a@%n", "sweep.7.2@c01"},
      {"%p", "sweep-7-x2bqd"},
      {"100%%/%i", "100%/7"},
      {"%4i-%02a", "0007-02"},
      {"%0i", "7"},
      {"%t.%3t", "40.040"},
      {"/abs/%n/%i/out.txt", "/abs/c01/7/out.txt"},
      {"./out", "./out"},
  };
  for (const auto& [text, path] : cases) {
    auto pattern = OutputPattern::parse(text);
    ASSERT_TRUE(pattern.ok()) << text << ": " << pattern.error().message;
    EXPECT_EQ(pattern->path(kPod), path);
    EXPECT_EQ(pattern->text(), text);
  }
}

TEST(OutputPattern, PathsAreNoLongerThanTheirPartsAllow) {
  EXPECT_FALSE(OutputPattern::parse("/" + std::string(4096, 'a')).ok());
  std::string many = "/";
  for (int i = 0; i < 2000; ++i) many += "%t";
  OutputPod pod = kPod;
  pod.task = std::string(100'000, 'x');
  const auto pattern = OutputPattern::parse(many);
  ASSERT_TRUE(pattern.ok());
  EXPECT_GT(pattern->path(pod).size(), 4096u) << "too long to be opened";
  EXPECT_LT(pattern->path(pod).size(), 200'000u);
}

TEST(OutputPattern, RejectsUnknownPlaceholders) {
  const std::pair<const char*, const char*> cases[] = {
      {"%x.out",
       "`%x` in %x.out is unknown; there are %j job, %i index, %a attempt, %t task of an array, "
       "%n node, %p pod"},
      {"a%", "`%` in a% is unknown"},
      {"%A_%a", "`%A` in %A_%a is unknown"},
      {"%3n", "`%3n` in %3n: only %i, %a and %t can have a number of digits"},
      {"%99i", "`%99i` in %99i: at most 20 digits"},
      {"logs/", "logs/ names a directory; name the files in it, such as logs/%i.out"},
      {"", "empty"},
  };
  for (const auto& [text, why] : cases) {
    auto pattern = OutputPattern::parse(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_EQ(pattern.error().message.substr(0, std::string(why).size()), why);
  }
}

// Names come from a coordinator.
TEST(OutputPattern, ValuesCannotAddDirectories) {
  OutputPod pod = kPod;
  pod.node = "../../etc";
  pod.job = "..";
  EXPECT_EQ(OutputPattern::parse("out/%j/%n")->path(pod), "out/_/.._.._etc");
  EXPECT_EQ(OutputPattern::parse("%i.%a.%n")->path({.job = "j", .pod = "j-x", .node = ""}),
            "-.-.-");
}

TEST(OutputPattern, FindsDirectoryOfAllFiles) {
  const std::pair<const char*, const char*> cases[] = {
      {"%i.out", ""}, {"logs/%i", "logs"},  {"a/%j/b-%i/c", "a/sweep"},
      {"/%i", "/"},   {"a/b/%n/%i", "a/b"}, {"./x", "."},
  };
  for (const auto& [text, directory] : cases)
    EXPECT_EQ(OutputPattern::parse(text)->directory("sweep"), directory) << text;
}

TEST(OutputPattern, RejectsPatternThatPodsWouldShare) {
  const auto fits = [](const char* text, bool indexed, bool several) {
    const Status right = OutputPattern::parse(text)->fits(indexed, several);
    return right.ok() ? "" : right.error().message;
  };
  EXPECT_EQ(fits("%i.out", true, true), "");
  EXPECT_EQ(fits("all.out", true, false), "");
  EXPECT_EQ(fits("%p.out", false, true), "");
  EXPECT_EQ(fits("%a.out", true, true), "%a.out is the same file for all indexes; add %i");
  EXPECT_EQ(fits("%n.out", false, true), "%n.out is the same file for all pods; add %p");
  EXPECT_EQ(fits("%i.out", false, false),
            "%i.out: files of a NonIndexed job cannot be named by index or attempt; use %p");
}

TEST(OutputPattern, WordIsNotPath) {
  for (const char* word : {"tag", "plain", "none", "plan"}) EXPECT_FALSE(looks_like_path(word));
  for (const char* path : {"%i", "./tag", "a.out", "a/b"}) EXPECT_TRUE(looks_like_path(path));
}

}  // namespace
}  // namespace muster::core
