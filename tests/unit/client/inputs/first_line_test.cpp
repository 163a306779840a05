// First lines of programs, and why the kernel refuses them.
#include "client/inputs/first_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

// start_trouble() of a file with these bytes.
std::string trouble_of(const std::string& bytes) {
  const std::string path = testing::TempDir() + "muster-first-line";
  std::ofstream(path, std::ios::binary) << bytes;
  const std::string trouble = start_trouble(path);
  std::filesystem::remove(path);
  return trouble;
}

TEST(FirstLine, WhatStartsHasNoTrouble) {
  EXPECT_EQ(trouble_of("#!/bin/sh\necho\r\n"), "");
  EXPECT_EQ(trouble_of("#! /usr/bin/env sh"), "");
  EXPECT_EQ(trouble_of(std::string("\x7f"
                                   "ELF\0\0",
                                   6)),
            "");
  EXPECT_EQ(start_trouble("/no/such/file"), "");
  EXPECT_EQ(start_trouble("/tmp"), "");
}

TEST(FirstLine, TroubleIsNamed) {
  EXPECT_EQ(trouble_of(""), "it is empty");
  EXPECT_EQ(trouble_of("echo hi\n"), "it has no first line such as #!/bin/sh");
  for (const char* line : {"#!/bin/sh\r\necho\r\n", "#!/usr/bin/env sh\r\n"})
    EXPECT_THAT(trouble_of(line), HasSubstr("ends with a carriage return")) << line;
  EXPECT_THAT(trouble_of("\xef\xbb\xbf#!/bin/sh\n"), HasSubstr("a byte order mark"));
  EXPECT_EQ(trouble_of("#!/no/such/program -x\n"),
            "its first line names /no/such/program, which does not exist here");
  EXPECT_EQ(trouble_of("#!\n"), "its first line names no interpreter");
}

}  // namespace
}  // namespace muster::cli
