// Frames of a terminal's input.
#include "base/terminal_input.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Type = TerminalInput::Type;
using Found = TerminalInput::Found;

std::string written(const TerminalInput& frame) {
  std::string out;
  frame.write(out);
  return out;
}

TEST(TerminalInput, FramesRoundTrip) {
  std::string stream = written({Type::open, 24, 300, "xterm-256color"}) +
                       written({Type::data, 0, 0, std::string("a\0\xff", 3)}) +
                       written({Type::size, 65'535, 1, ""}) + written({Type::open, 1, 2, ""});
  TerminalInput frame;
  ASSERT_EQ(TerminalInput::read(stream, frame), Found::frame);
  EXPECT_EQ(frame.type, Type::open);
  EXPECT_EQ(frame.rows, 24);
  EXPECT_EQ(frame.columns, 300);
  EXPECT_EQ(frame.bytes, "xterm-256color");
  ASSERT_EQ(TerminalInput::read(stream, frame), Found::frame);
  EXPECT_EQ(frame.type, Type::data);
  EXPECT_EQ(frame.bytes, std::string("a\0\xff", 3));
  ASSERT_EQ(TerminalInput::read(stream, frame), Found::frame);
  EXPECT_EQ(frame.type, Type::size);
  EXPECT_EQ(frame.rows, 65'535);
  EXPECT_EQ(frame.columns, 1);
  ASSERT_EQ(TerminalInput::read(stream, frame), Found::frame);
  EXPECT_EQ(frame.bytes, "");
  EXPECT_EQ(TerminalInput::read(stream, frame), Found::more);
}

TEST(TerminalInput, LongDataIsSeveralFrames) {
  const std::string data(TerminalInput::kPayloadMax + 5, 'x');
  std::string stream = written({.bytes = data}), read;
  TerminalInput frame;
  while (TerminalInput::read(stream, frame) == Found::frame) read += frame.bytes;
  EXPECT_EQ(read, data);
  EXPECT_EQ(stream, "");
}

TEST(TerminalInput, AnIncompleteFrameIsKept) {
  const std::string whole = written({Type::open, 24, 80, "vt100"});
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    TerminalInput frame;
    EXPECT_EQ(TerminalInput::read(part, frame), Found::more) << size;
    EXPECT_EQ(part.size(), size);
  }
}

TEST(TerminalInput, MalformedFrameIsRefused) {
  using namespace std::string_literals;
  for (const std::string& bytes :
       {"\0\0\0"s, "\4\0\1x"s, "\3\0\3abc"s, "\3\0\5abcde"s, "\1\0\3abc"s,
        written({Type::open, 1, 1, "a b"}), written({Type::open, 1, 1, "a\n"}),
        written({Type::open, 1, 1, std::string(TerminalInput::kTermMax + 1, 'x')})}) {
    std::string in = bytes;
    TerminalInput frame;
    EXPECT_EQ(TerminalInput::read(in, frame), Found::broken) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace muster
