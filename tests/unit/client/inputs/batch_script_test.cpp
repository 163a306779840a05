// Batch scripts: what is one, what is wrong with it, and the command that runs it.
#include "client/inputs/batch_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

BatchScript script_of(const std::string& text) {
  auto script = parse_batch_script("dir/job.sh", text);
  EXPECT_TRUE(script) << (script ? "" : script.error().message);
  return script ? *script : BatchScript();
}

// "3: --time=5 -n 1; 4: ..."
std::string text_of(const std::vector<OptionLine>& lines) {
  std::string text;
  for (const OptionLine& line : lines) {
    text += (text.empty() ? "" : "; ") + std::to_string(line.number) + ":";
    for (const std::string& word : line.words) text += " " + word;
  }
  return text;
}

TEST(BatchScript, IsToldFromManifest) {
  const std::pair<const char*, bool> cases[] = {{"#!/bin/sh\n", true},
                                                {"#!/bin/bash\ncat <<E\nkind: Job\nE\n", true},
                                                {"#SBATCH -n 1\nhostname\n", true},  // forgot #!
                                                {"#MUSTER --retries 1\nhostname\n", true},
                                                {"# a job\nkind: Job\n#SBATCH -n 1\n", false},
                                                {"apiVersion: batch/v1\n#MUSTER x\n", false},
                                                {"{\n#SBATCH -n 1\n}\n", false},
                                                {"hostname\n", false},
                                                {"", false}};
  for (const auto& [text, is] : cases) EXPECT_EQ(is_batch_script(text), is) << text;
}

TEST(BatchScript, OptionsStandBeforeTheFirstCommand) {
  const BatchScript script = script_of(
      "#!/bin/bash\n"
      "#SBATCH -J a --time=1:00:00   # an hour\n"
      "# SBATCH -n 2\n"
      "##SBATCH -n 2\n"
      "\n"
      "#SBATCHES\n"
      "#MUSTER --retries 3\n"
      "  # indented\n"
      "#SBATCH --comment='two words' --x=\"a \\\" b\" c\\ d '' a#b\n"
      "#SBATCH\n"
      "set -e\n"
      "#SBATCH -n 4\n"
      "#MUSTER --x\n");
  EXPECT_EQ(text_of(script.sbatch),
            "2: -J a --time=1:00:00; 9: --comment=two words --x=a \" b c d  a#b; 10:");
  EXPECT_EQ(text_of(script.muster), "7: --retries 3");
  EXPECT_THAT(script.late, ElementsAre(12, 13));
  EXPECT_EQ(script.name, "job.sh");
}

TEST(BatchScript, WhatSbatchRefusesIsRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"#SBATCH -n 1\n", "dir/job.sh:1: a script starts with #! and its interpreter, such as"},
      {"#!\necho\n", "dir/job.sh:1: #! must be followed by an interpreter, such as #!/bin/bash"},
      {"#! \t\necho\n", "dir/job.sh:1: #! must be followed"},
      {"#!/bin/bash\r\necho\r\n", "dir/job.sh:1: ends with CR LF, as on Windows: convert"},
      {"#!/bin/bash\necho\r\n", "dir/job.sh:2: ends with CR LF"},
      {"#!/bin/bash\n#SBATCH -J 'a\n", "dir/job.sh:2: a quote is not closed"},
      {"#!/bin/bash\n# \xe9t\xe9\n",
       "dir/job.sh: is not UTF-8 text, so a job cannot carry it; run"},
      {"#!/bin/sh\n" + std::string(128 << 10, 'x'),
       "dir/job.sh: a job can carry a script of up to"},
  };
  for (const auto& [text, said] : cases) {
    const auto script = parse_batch_script("dir/job.sh", text);
    ASSERT_FALSE(script) << said;
    EXPECT_THAT(script.error().message, StartsWith(said));
  }
  EXPECT_THAT(parse_batch_script("j.sh", "#!/bin/sh\n\xff\n").error().message,
              HasSubstr("-n 1 -- ./j.sh"));
}

TEST(BatchScript, ShellsGetTheTextAsAnArgument) {
  const auto command = [](const std::string& first) {
    const BatchScript script = script_of(first + "\necho\n");
    std::string text;
    for (const std::string& word : command_of(script))
      text += (text.empty() ? "" : "|") + (word == script.text ? "TEXT" : word);
    return text;
  };
  EXPECT_EQ(command("#!/bin/bash"), "/bin/bash|-c|TEXT|job.sh");
  EXPECT_EQ(command("#! /bin/bash -l"), "/bin/bash|-l|-c|TEXT|job.sh");
  EXPECT_EQ(command("#!/bin/sh -"), "/bin/sh|-c|TEXT|job.sh");
  EXPECT_EQ(command("#!/bin/bash -e -x "), "/bin/bash|-e -x|-c|TEXT|job.sh");  // like the kernel
  EXPECT_EQ(command("#!/usr/bin/env bash"), "/usr/bin/env|bash|-c|TEXT|job.sh");
  EXPECT_EQ(command("#!/usr/bin/env -S bash -eu"), "/usr/bin/env|bash|-eu|-c|TEXT|job.sh");
  EXPECT_THAT(command("#!/usr/bin/python3 -u"), StartsWith("sh|-c|f=$(mktemp)"));
  EXPECT_THAT(command("#!/usr/bin/python3 -u"),
              testing::EndsWith("|sh|TEXT|/usr/bin/python3|-u|/dev/fd/9"));
  EXPECT_THAT(command("#!/usr/bin/env -S python3 -u"),
              testing::EndsWith("|sh|TEXT|/usr/bin/env|python3|-u|/dev/fd/9"));
}

}  // namespace
}  // namespace muster::cli
