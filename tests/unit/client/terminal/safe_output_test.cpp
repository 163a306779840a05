// Everything that the command line prints, as it reaches the terminal.
#include "client/terminal/safe_output.hpp"

#include "client/terminal/json.hpp"
#include "client/terminal/status_line.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <sstream>
#include <string>

namespace muster::cli {
namespace {

std::string printed(std::ostream& stream, const std::function<void()>& print) {
  std::ostringstream to;
  std::streambuf* const before = stream.rdbuf(to.rdbuf());
  {
    const SafeOutput safe;
    print();
  }
  stream.rdbuf(before);
  return to.str();
}

TEST(SafeOutput, P12EscapesWhateverAVerbPrints) {
  const auto print = [](std::ostream& stream) {
    return [&stream] { stream << "job \x1b]0;x\x07 " << 7 << " \u202e" << '\x1b' << std::endl; };
  };
  const std::string wanted = "job \\u001b]0;x\\u0007 7 \\u202e\\u001b\n";
  EXPECT_EQ(printed(std::cout, print(std::cout)), wanted);
  EXPECT_EQ(printed(std::cerr, print(std::cerr)), wanted);
}

TEST(SafeOutput, P12JoinsCharactersWrittenInParts) {
  const auto parts = [] {
    std::cout << "a\xc2"
              << "\x9b"
              << "b\xe2\x80"
              << "\xae"
              << "\xe2\x82"
              << "\xac";
    for (const char c : std::string("\xf0\x9f\x98\x80")) std::cout.put(c);
  };
  EXPECT_EQ(printed(std::cout, parts), "a\\u009bb\\u202e\u20ac\U0001f600");
  EXPECT_EQ(printed(std::cout, [] { std::cout << "a\xe2\x82" << std::flush; }), "a\\xe2\\x82");
}

TEST(SafeOutput, P12PodsOutputAndColorsPassInOrder) {
  const auto print = [] {
    std::cout << "\x1b"
              << "1";
    raw_out() << "\x1b[32m2\x1b[0m\xff";
    std::cout << "3\x1b";
  };
  EXPECT_EQ(printed(std::cout, print),
            "\\u001b1\x1b[32m2\x1b[0m\xff"
            "3\\u001b");
  std::ostringstream after;
  std::streambuf* const before = std::cout.rdbuf(after.rdbuf());
  raw_out() << "\x1b";
  std::cout.rdbuf(before);
  EXPECT_EQ(after.str(), "\x1b");
}

TEST(SafeOutput, OurOwnWordsBeginALine) {
  const auto print = [] {
    std::cerr << "begins" << std::endl;
    relay_err("a --> ");
    EXPECT_TRUE(within_line());
    relay_err("");
    relay_err("b");
    std::cerr << "1/1 "
              << "running" << std::endl;
    EXPECT_FALSE(within_line());
    relay_err("c");
    raw_err() << "in color\n";
    relay_err("done\n");
    std::cerr << "end\n";
  };
  EXPECT_EQ(printed(std::cerr, print), "begins\na --> b\n1/1 running\nc\nin color\ndone\nend\n");
  EXPECT_EQ(printed(std::cout, [] { relay_out("42"); }), "42") << "byte for byte";
}

TEST(SafeOutput, ProgressWaitsForTheEndOfALine) {
  const auto print = [] {
    StatusLine line(0, When::never);
    relay_err("a --> ");
    line.show(1'000, "1", [] { return "1 running"; });
    relay_err("done\n");
    line.show(2'000, "1", [] { return "1 running"; });
  };
  EXPECT_EQ(printed(std::cerr, print), "a --> done\n1 running\n");
}

TEST(SafeOutput, P12AJsonDocumentKeepsItsValue) {
  const Json json = {{"a", "\x1b[2J\u009b\u202e\u200b\x7f\U000e0041 é\n"}};
  const std::string text = printed(std::cout, [&] { std::cout << dumped(json, 4) << "\n"; });
  EXPECT_EQ(text,
            "{\n    \"a\": \"\\u001b[2J\\u009b\\u202e\\u200b\\u007f\\udb40\\udc41 é\\n\"\n}\n");
  EXPECT_EQ(read_json(text), json);
}

}  // namespace
}  // namespace muster::cli
