// The letters of --output are the same whoever writes the files.
#include "client/settings/output_files.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace muster::cli {
namespace {

TEST(OutputFiles, LettersOfSbatchBecomeThoseOfPatterns) {
  EXPECT_EQ(*output_file_pattern("%x-%3a.%r", "/d%", true), "/d%%/%j-%3t.%a");
  EXPECT_EQ(*output_file_pattern("/o/%A_%a", "/d", false), "/o/%j_%i");
  EXPECT_EQ(
      run_file_pattern("%x-%3a.%r@%N")
          ->path(
              {.job = "j", .pod = "j-0-x", .node = "n", .index = 0, .attempt = 2, .task = "101"}),
      "j-101.2@n");
}

TEST(OutputFiles, MessagesHaveTheLettersThatWereTyped) {
  EXPECT_EQ(as_typed("%t.out, %3a%%a and %i"), "%a.out, %3r%%a and %i");
  EXPECT_EQ(as_typed("100%"), "100%");
  for (const char* wrong : {"%t", "%y.out"})
    EXPECT_NE(run_file_pattern(wrong).error().message.find("` in " + std::string(wrong) +
                                                           " is unknown; there are %j job, %a "),
              std::string::npos);
  EXPECT_EQ(run_file_pattern("%r/").error().message,
            "%r/ names a directory; name the files in it, such as %r/%i.out");
  EXPECT_EQ(as_typed(run_file_pattern("%r.out")->fits(true, true).error().message),
            "%r.out is the same file for all indexes; add %i");
}

}  // namespace
}  // namespace muster::cli
