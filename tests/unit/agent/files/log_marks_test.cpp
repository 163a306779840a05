// Marks: which lines of an output are older than a time, and which are its last.
#include "agent/files/log_marks.hpp"

#include "agent/files/logs.hpp"
#include "base/fd.hpp"
#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <sys/time.h>
#include <vector>

namespace muster::agent {
namespace {

constexpr Millis kBegun = 2'000'000'000'000;

void append_to(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::app) << bytes;
}

void set_modified(const std::string& path, Millis at) {
  const timeval time{at / 1000, at % 1000 * 1000};
  const timeval times[2] = {time, time};
  ASSERT_EQ(utimes(path.c_str(), times), 0);
}

LogMarks marks_of(const std::string& path, const std::vector<LogMark>& marks) {
  std::filesystem::remove(path);
  append_to(path, mark_bytes(marks));
  return LogMarks(path);
}

TEST(LogMarks, AreReadAsWrittenAndFound) {
  TempDir temp;
  std::vector<LogMark> all;
  for (uint64_t i = 1; i <= 1'000; ++i)
    all.push_back({i * 10, kBegun + static_cast<Millis>(i), static_cast<uint16_t>(i / 500)});
  const LogMarks marks = marks_of(temp / "m", all);
  ASSERT_EQ(marks.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(marks.at(i), all[i]);
  EXPECT_EQ(marks.first_reaching(0), 0u);
  EXPECT_EQ(marks.first_reaching(5'000), 499u);
  EXPECT_EQ(marks.first_reaching(5'001), 500u);
  EXPECT_EQ(marks.first_reaching(10'001), 1'000u) << "none";
  EXPECT_EQ(marks.last(), all.back());
  EXPECT_EQ(LogMarks(temp / "none").last(), std::nullopt);
}

TEST(LogMarks, IgnoreAPartOfAMark) {
  TempDir temp;
  append_to(temp / "m", mark_bytes({{10, kBegun, 0}}) + "1234567");
  EXPECT_EQ(LogMarks(temp / "m").size(), 1u);
}

TEST(LogMarks, TellWhatEachProcessWrote) {
  TempDir temp;
  // The second process wrote 20 bytes, the third nothing, the fourth is writing.
  const LogMarks marks = marks_of(temp / "m", {{10, kBegun, 0},
                                               {10, kBegun + 5, 1},
                                               {30, kBegun + 6, 1},
                                               {30, kBegun + 7, 2},
                                               {30, kBegun + 8, 3},
                                               {40, kBegun + 9, 3}});
  struct Row {
    int32_t run;
    uint64_t begin;
    std::optional<uint64_t> end;
  };
  for (const Row& row :
       {Row{kAllRuns, 0, {}}, Row{0, 0, 10}, Row{1, 10, 30}, Row{2, 30, 30}, Row{3, 30, {}}}) {
    const LogSpan span = span_of(marks, row.run);
    EXPECT_EQ(span.begin, row.begin) << row.run;
    EXPECT_EQ(span.end, row.end) << row.run;
  }
}

class Search : public ::testing::Test {
 protected:
  // The file has these bytes and was last modified then.
  void file(size_t which, const std::string& bytes, const std::vector<LogMark>& marks, Millis at) {
    const std::string path = temp_ / (which == 0 ? "out" : "err");
    std::filesystem::remove(path);
    append_to(path, bytes);
    fds_[which] = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    marks_[which].emplace(marks_of(path + "-times", marks));
    sources_[which] = {fds_[which].get(), 0, bytes.size(), at, &*marks_[which]};
    bytes_[which] = bytes;
  }
  std::string since(Millis at) { return bytes_[0].substr(begin_since(sources_[0], at)); }
  std::string last(uint64_t lines) {
    std::array<LogSource, 2> sources = sources_;
    begin_last(sources, lines);
    return bytes_[0].substr(sources[0].begin) + "|" + bytes_[1].substr(sources[1].begin);
  }

  TempDir temp_;
  std::array<Fd, 2> fds_;
  std::array<std::optional<LogMarks>, 2> marks_;
  std::array<LogSource, 2> sources_;
  std::array<std::string, 2> bytes_;
};

TEST_F(Search, LeavesOutLinesThatAreOlder) {
  // "b" was begun by the first mark and ended by the second; "d" has no mark.
  file(0, "a\nb\nc\nd\n", {{3, 100, 0}, {6, 200, 0}}, 300);
  EXPECT_EQ(since(50), "a\nb\nc\nd\n");
  EXPECT_EQ(since(100), "a\nb\nc\nd\n");
  EXPECT_EQ(since(101), "b\nc\nd\n");
  EXPECT_EQ(since(200), "b\nc\nd\n");
  EXPECT_EQ(since(201), "d\n");
  EXPECT_EQ(since(300), "d\n");
  EXPECT_EQ(since(301), "");
}

TEST_F(Search, WithoutMarksLinesHaveTheTimeOfTheLastWrite) {
  file(0, "a\nb\n", {}, 300);
  EXPECT_EQ(since(300), "a\nb\n");
  EXPECT_EQ(since(301), "");
}

TEST_F(Search, FindsTheLastLinesOfBothOutputsByTime) {
  file(0, "a\nd\ne\n", {{2, 100, 0}, {4, 400, 0}, {6, 500, 0}}, 500);
  file(1, "b\nc\nf\n", {{2, 200, 0}, {4, 300, 0}, {6, 600, 0}}, 600);
  EXPECT_EQ(last(0), "|");
  EXPECT_EQ(last(1), "|f\n");
  EXPECT_EQ(last(2), "e\n|f\n");
  EXPECT_EQ(last(3), "d\ne\n|f\n");
  EXPECT_EQ(last(5), "d\ne\n|b\nc\nf\n");
  EXPECT_EQ(last(6), "a\nd\ne\n|b\nc\nf\n");
  EXPECT_EQ(last(99), "a\nd\ne\n|b\nc\nf\n");
}

TEST_F(Search, CountsALastLineThatIsNotComplete) {
  file(0, "one\ntwo", {{7, 100, 0}}, 100);
  file(1, "", {}, 0);
  EXPECT_EQ(last(1), "two|");
  EXPECT_EQ(last(2), "one\ntwo|");
}

TEST_F(Search, LinesOfOneTimeAreInTheOrderOfTheOutputs) {
  file(0, "a\n", {{2, 100, 0}}, 100);
  file(1, "b\n", {{2, 100, 0}}, 100);
  EXPECT_EQ(last(1), "|b\n");
}

TEST_F(Search, CrossesBlocks) {
  std::string text;
  std::vector<LogMark> marks;
  size_t expected = 0;
  for (int i = 0; i < 40'000; ++i) {
    if (i == 30'000) expected = text.size();
    text += "line " + std::to_string(i) + "\n";
    marks.push_back({text.size(), 1'000 + i, 0});
  }
  file(0, text, marks, 50'000);
  file(1, "", {}, 0);
  EXPECT_EQ(since(31'000).size(), text.size() - expected);
  EXPECT_EQ(last(10'000).size(), text.size() - expected + 1);
  const std::string long_line(200'000, 'x');
  file(0, long_line + "\nb\n", {{100'000, 100, 0}, {200'001, 200, 0}, {200'003, 300, 0}}, 300);
  EXPECT_EQ(since(150).size(), 200'003u) << "its end is not older";
  EXPECT_EQ(since(201), "b\n");
}

// Of a store that watches one output.
class Times : public ::testing::Test {
 protected:
  Times() : logs_(temp_ / "logs"), files_(*logs_.open("u", "p", "main")) { begin(0, kBegun); }
  void begin(uint16_t run, Millis at) {
    logs_.times().begin(logs_.output("u", "p", "main"), run, at);
  }
  void end() { logs_.times().end(logs_.output("u", "p", "main")); }
  void print(const std::string& text, Millis at) {
    append_to(files_.out, text);
    set_modified(files_.out, at);
  }
  LogMarks marks() { return LogMarks(LogTimes::path_of(files_.out)); }
  // "TIME:TEXT" for each mark of what is read from the beginning.
  std::string read(int32_t run = kAllRuns, int64_t from = 0) {
    const LogName name{"u", "p", "main"};
    LogChunk chunk = logs_.read(name, from, 1 << 20);
    logs_.finish(name, run, true, chunk, kBegun + 9'000);
    std::string text;
    uint64_t at = static_cast<uint64_t>(from);
    for (const LogMark& mark : chunk.marks) {
      const uint64_t end =
          std::min<uint64_t>(mark.offset, static_cast<uint64_t>(from) + chunk.data.size());
      text += std::to_string(mark.at - kBegun) + ":" +
              chunk.data.substr(at - static_cast<uint64_t>(from), end - at) + " ";
      at = end;
    }
    over_ = chunk.over;
    return text;
  }

  TempDir temp_;
  LogStore logs_;
  LogStore::Paths files_;
  bool over_ = false;
};

TEST_F(Times, AreThoseOfTheLastWriteBeforeALook) {
  print("a", kBegun + 10);
  logs_.times().look(kBegun + 100);
  logs_.times().look(kBegun + 200);
  print("b", kBegun + 250);
  print("c", kBegun + 260);
  logs_.times().look(kBegun + 300);
  EXPECT_EQ(marks().size(), 0u) << "a short process costs no file";
  logs_.times().look(kBegun + LogTimes::kFirstMs);
  EXPECT_EQ(marks().size(), 2u);
  print("d", kBegun + 700);
  EXPECT_EQ(read(), "10:a 260:bc 700:d ");
}

TEST_F(Times, AProcessThatWroteOnceNeedsNoMarks) {
  print("a", kBegun + 10);
  logs_.times().look(kBegun + 100);
  end();
  EXPECT_FALSE(std::filesystem::exists(LogTimes::path_of(files_.out)));
  EXPECT_EQ(read(), "10:a ");
}

TEST_F(Times, OfAProcessThatWroteTwiceAreKept) {
  print("a", kBegun + 10);
  logs_.times().look(kBegun + 100);
  print("b", kBegun + 150);
  logs_.times().look(kBegun + 200);
  end();
  EXPECT_EQ(read(), "10:a 150:b ");
}

TEST_F(Times, DoNotChangeOnceShown) {
  print("a", kBegun + 10);
  EXPECT_EQ(read(), "10:a ");
  print("b", kBegun + 20);
  logs_.times().look(kBegun + 100);
  EXPECT_EQ(read(), "10:a 20:b ");
}

TEST_F(Times, NeverDecreaseNorLieInTheFuture) {
  print("a", kBegun + 50);
  logs_.times().look(kBegun + 60);
  print("b", kBegun + 40);  // the clock was set back
  logs_.times().look(kBegun + 70);
  print("c", kBegun + 99'000);
  logs_.times().look(kBegun + 600);
  EXPECT_EQ(read(), "50:a 50:b 600:c ");
}

TEST_F(Times, GoOnWithTheNextAgent) {
  print("a", kBegun + 10);
  logs_.times().look(kBegun + 600);
  LogTimes next;
  next.adopt(logs_.output("u", "p", "main"));
  next.look(kBegun + 700);
  EXPECT_EQ(marks().size(), 1u) << "nothing was written";
  print("b", kBegun + 710);
  next.look(kBegun + 800);
  end();
  EXPECT_EQ(read(), "10:a 710:b ");
}

TEST_F(Times, OfAProcessThatAnEarlierVersionRestartedShowAll) {
  end();
  print("a", kBegun + 10);
  LogTimes next;
  next.adopt(logs_.output("u", "p", "main"));
  print("b", kBegun + 20);
  next.look(kBegun + 1'000);
  EXPECT_EQ(read(1), "20:ab ");
}

TEST_F(Times, SeparateTheProcessesOfAContainer) {
  print("a", kBegun + 10);
  EXPECT_EQ(read(0), "10:a ");
  EXPECT_FALSE(over_);
  end();
  begin(1, kBegun + 50);
  print("b", kBegun + 60);
  end();
  begin(2, kBegun + 70);
  EXPECT_EQ(read(0), "10:a ");
  EXPECT_TRUE(over_);
  EXPECT_EQ(read(1, 1), "60:b ");
  EXPECT_EQ(read(2, 2), "");
  EXPECT_FALSE(over_);
  EXPECT_EQ(read(), "10:a 60:b ");
  const LogSearch previous{.name = {"u", "p", "main"}, .run = 1};
  bool denied = true;
  EXPECT_EQ(logs_.find(previous, logs_.open_to_read(previous.name, denied), {}, kBegun).out, 1u);
  EXPECT_FALSE(denied);
}

TEST_F(Times, OfManyOutputsAreLookedAtInTurns) {
  for (size_t i = 0; i < 2 * LogTimes::kLooks; ++i) {
    const std::string pod = "q" + std::to_string(i);
    append_to(logs_.open("u", pod, "main")->out, "a");
    logs_.times().begin(logs_.output("u", pod, "main"), 0, kBegun - 10'000);
  }
  size_t files = 0;
  for (int turn = 0; turn < 3; ++turn) logs_.times().look(kBegun);
  for (const auto& one : std::filesystem::directory_iterator(temp_ / "logs/u"))
    files += one.path().string().ends_with("-times") ? 1 : 0;
  EXPECT_EQ(files, 2 * LogTimes::kLooks);
}

}  // namespace
}  // namespace muster::agent
