// Lines for a descriptor that nobody reads.
#include "base/lines/line_queue.hpp"

#include "base/check.hpp"
#include "base/lines/stderr_lines.hpp"
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster {
namespace {

constexpr int kPipeBytes = 4096;

// A small pipe: {end to read, end to write}.
std::pair<Fd, Fd> small_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  EXPECT_GE(fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes), kPipeBytes);
  return {Fd(ends[0]), Fd(ends[1])};
}

int bytes_in(const Fd& pipe) {
  int bytes = 0;
  EXPECT_EQ(ioctl(pipe.get(), FIONREAD, &bytes), 0);
  return bytes;
}

// Reads up to the end, or up to this line.
std::vector<std::string> lines_from(const Fd& pipe, const std::string& last = "") {
  std::vector<std::string> lines;
  std::string line;
  char c;
  while (read(pipe.get(), &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    lines.push_back(std::exchange(line, ""));
    if (lines.back() == last) break;
  }
  return lines;
}

std::string notice(uint64_t dropped) {
  return "dropped " + std::to_string(dropped) + "\n";
}

std::string padded(int number, size_t size = 100) {
  std::string line = std::to_string(number) + " ";
  line.resize(size, '.');
  return line;
}

TEST(P28LineQueue, KeepsTheOrderAndLosesNothingWhileSomebodyReads) {
  auto [out, in] = small_pipe();
  {
    LineQueue queue(std::move(in), notice);
    for (int i = 0; i < 3; ++i) queue.write(padded(i) + "\n");
    EXPECT_EQ(queue.dropped(), 0u);
  }
  EXPECT_EQ(lines_from(out), std::vector({padded(0), padded(1), padded(2)}));
}

// Fills the pipe, then writes more lines than may wait; returns what a late reader gets.
std::vector<std::string> read_late(LineQueue::Limits limits, uint64_t& dropped) {
  auto [out, in] = small_pipe();
  LineQueue queue(std::move(in), notice, limits);
  const int many = 1'000;
  for (int i = 0; i < many; ++i) queue.write(padded(i) + "\n");  // would block here
  dropped = queue.dropped();
  queue.write("last\n");
  return lines_from(out, "last");
}

TEST(P28LineQueue, NeverBlocksAndSaysHowManyLinesItDropped) {
  const LineQueue::Limits rows[] = {{.lines = 50, .bytes = 1u << 20},
                                    {.lines = 1'000'000, .bytes = 50 * 101}};
  for (const LineQueue::Limits& limits : rows) {
    uint64_t dropped = 0;
    const std::vector<std::string> lines = read_late(limits, dropped);
    EXPECT_GT(dropped, 0u);
    // Every line arrived in order, or is counted where it is missing.
    int next = 0;
    uint64_t told = 0;
    for (const std::string& line : lines) {
      if (line == "last") break;
      if (line.starts_with("dropped ")) {
        const int count = std::atoi(line.c_str() + 8);
        told += static_cast<uint64_t>(count);
        next += count;
      } else {
        EXPECT_EQ(line, padded(next++));
      }
    }
    EXPECT_EQ(next, 1'000);
    EXPECT_GE(told, dropped);  // "last" may have taken the place of one more
    EXPECT_LE(told, dropped + 1);
  }
}

TEST(P28LineQueue, DestructorDrainsOnlyForLimitedTime) {
  auto [out, in] = small_pipe();
  const Millis begin = boot_now();
  {
    LineQueue queue(std::move(in), notice);
    for (int i = 0; i < 1'000; ++i) queue.write(padded(i) + "\n");
  }
  EXPECT_GE(boot_now() - begin, LineQueue::kDrainMax);
  EXPECT_EQ(bytes_in(out) / 101, kPipeBytes / 101) << "what fits is there";
}

TEST(P28LineQueue, ClosedReaderDropsLinesWithoutSigpipe) {
  auto [out, in] = small_pipe();
  LineQueue queue(std::move(in), notice);
  out = Fd();
  queue.write("into nowhere\n");
  queue.drain();
  EXPECT_EQ(queue.dropped(), 1u);
}

// How a child ends that has its log in this pipe, and what it said.
std::pair<std::vector<std::string>, int> said_by(void (*act)()) {
  auto [out, in] = small_pipe();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(in.get(), STDERR_FILENO);
    in = Fd();
    log::setup_queued("test", "info");
    act();
    std::exit(0);
  }
  in = Fd();
  std::vector<std::string> lines = lines_from(out);
  // A sanitizer may have something to say at the exit.
  std::erase_if(lines, [](const std::string& line) {
    return line.find(" test: ") == line.npos && !line.starts_with("muster: ");
  });
  int status = 0;
  waitpid(child, &status, 0);
  return {lines, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

TEST(P28Log, LinesBeforeExitAndFailedCheckAreWritten) {
  const auto [at_exit, none] = said_by([] { log::info("bye"); });
  ASSERT_EQ(at_exit.size(), 1u);
  EXPECT_TRUE(at_exit[0].ends_with(" info test: bye")) << at_exit[0];
  EXPECT_EQ(none, 0);

  const auto [at_check, signal] = said_by([] {
    log::info("almost");
    MUSTER_CHECK(1 == 2, "why");
  });
  ASSERT_EQ(at_check.size(), 2u);
  EXPECT_TRUE(at_check[0].ends_with(" info test: almost")) << at_check[0];
  EXPECT_TRUE(at_check[1].ends_with(": 1 == 2 [why]")) << at_check[1];
  EXPECT_EQ(signal, SIGABRT);
}

TEST(P28Log, AForkedChildWritesAtOnce) {
  const auto [lines, signal] = said_by([] {
    const pid_t child = fork();
    if (child == 0) {
      log::info("from the child");
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    log::info("from the parent");
  });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with("from the child")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("from the parent")) << lines[1];
  EXPECT_EQ(signal, 0);
}

TEST(P28Log, DroppedLinesAreReportedInOneLine) {
  EXPECT_EQ(dropped_text(1), "1 line was dropped: nobody reads the log");
  EXPECT_EQ(dropped_text(27), "27 lines were dropped: nobody reads the log");
}

}  // namespace
}  // namespace muster
