// Typed words: where the arguments begin, and which flags of a script stay.
#include "cli/grammar/typed_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

struct Values {
  bool keep = false;
  std::string text;
  std::vector<std::string> list;
};

FlagRows some_rows(Values& values) {
  return {{"job", "JOB", "", &values.list},
          {"-n,--completions", "N", "", &values.text},
          {"-k,--keep-order", "", "", &values.keep},
          {"-o", "FORM", "", &values.text},
          {"--scratch", "[SIZE]", "", &values.text, kAnything, kOptional},
          {"--env", "NAME=VALUE", "", &values.list},
          {"-a,--array", "RANGES", "", &values.text}};
}

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string with_spaces(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(TypedWords, ArgumentsBeginAfterFlagsAndTheirValues) {
  Values values;
  const struct {
    const char *words, *flags, *rest;
  } cases[] = {
      {"j.sh -n 3", "", "j.sh -n 3"},
      {"-n 3 j.sh", "--completions", "j.sh"},
      {"-n3 --completions=4 -k j.sh a", "--completions --completions --keep-order", "j.sh a"},
      {"-kn 3 j.sh", "--keep-order", "j.sh"},
      {"-o yaml -", "-o", "-"},
      {"--scratch j.sh", "--scratch", ""},  // as CLI11 takes it
      {"--scratch -k j.sh", "--scratch --keep-order", "j.sh"},
      {"--unknown j.sh", "--unknown", "j.sh"},
      {"-n", "--completions", ""},
      {"", "", ""},
  };
  for (const auto& [words, flags, rest] : cases) {
    const TypedWords typed = typed_words(some_rows(values), words_in(words));
    std::vector<std::string> names;
    for (const TypedFlag& flag : typed.flags) names.push_back(flag.name);
    EXPECT_EQ(with_spaces(names), flags) << words;
    EXPECT_EQ(with_spaces(typed.rest), rest) << words;
  }
}

TEST(TypedWords, EmptyValueIsFound) {
  Values values;
  const FlagRows rows = some_rows(values);
  EXPECT_EQ(empty_flag(rows, {"--keep-order", "--env=", "--array"}), "--env=");
  EXPECT_EQ(empty_flag(rows, {"--env=A=", "--keep-order=", "--other=", "env="}), "");
}

TEST(TypedWords, FlagsOfTheCommandLineWin) {
  Values values;
  const FlagRows rows = some_rows(values);
  ScriptFlags script{.file = "j.sh",
                     .first = {"--array=1-3", "--env=A=1", "--scratch=1Gi", "-o=x"},
                     .lines = {{2, {"--scratch", "2Gi"}}, {3, {"-k", "--env", "B=2"}}},
                     .yields = {{"--array", {"--completions"}}}};
  const auto merged = [&](const std::string& words) {
    return with_spaces(with_script_flags(rows, script, typed_words(rows, words_in(words))));
  };
  EXPECT_EQ(merged("j.sh x"), "--array=1-3 --env=A=1 -o=x --scratch 2Gi -k --env B=2 j.sh");
  EXPECT_EQ(merged("-n 2 --env C=3 j.sh"),
            "--env=A=1 -o=x --scratch 2Gi -k --env B=2 -n 2 --env C=3 j.sh");
  EXPECT_EQ(merged("-a 7 -o y --scratch=3Gi --keep-order j.sh"),
            "--env=A=1 --env B=2 -a 7 -o y --scratch=3Gi --keep-order j.sh");
}

}  // namespace
}  // namespace muster::cli
