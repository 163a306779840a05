// The note that a crashing process leaves behind.
#include "base/last_words.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace muster {
namespace {

// The note of a child process that calls `act`, and the signal that ended it.
std::pair<std::string, int> last_words(const std::function<void()>& act) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    close(STDERR_FILENO);
    // Sanitizers have handlers, which end the process in their own way.
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
      std::signal(signal, SIG_DFL);
    note_crashes(ends[1], "1.2");
    act();
    _exit(0);
  }
  close(ends[1]);
  char text[128];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {std::string(text, size > 0 ? static_cast<size_t>(size) : 0),
          WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

using Words = std::pair<std::string, int>;

TEST(LastWords, NameTheJobThatTheCrashingThreadWorksOn) {
  auto abort_at = [](uint64_t job) {
    return [job] {
      const WorksOn works(job);
      std::abort();
    };
  };
  EXPECT_EQ(last_words(abort_at(7)), Words("crash 7 1.2\n", SIGABRT));
  EXPECT_EQ(last_words(abort_at(18446744073709551615u)),
            Words("crash 18446744073709551615 1.2\n", SIGABRT));
  EXPECT_EQ(last_words(abort_at(10)), Words("crash 10 1.2\n", SIGABRT));
  EXPECT_EQ(last_words([] { std::abort(); }), Words("", SIGABRT));
  EXPECT_EQ(last_words([] {
              const WorksOn outer(3);
              { const WorksOn inner(4); }
              std::abort();
            }),
            Words("crash 3 1.2\n", SIGABRT));
  EXPECT_EQ(last_words([] {
              const WorksOn works(3);
              std::thread([] { std::abort(); }).join();
            }),
            Words("", SIGABRT))
      << "another thread's job";
  EXPECT_EQ(last_words([] {
              const WorksOn works(3);
              kill(getpid(), SIGKILL);
            }),
            Words("", SIGKILL));
}

// A watchdog's SIGABRT hits any thread, and says nothing about the job that it is working on.
TEST(LastWords, P31TheFirstSignalFromOutsideEndsTheProcessAndBlamesNoJob) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    static int sent;
    sent = signal;
    EXPECT_EQ(last_words([] {
                const WorksOn works(3);
                const pid_t parent = getpid();
                const pid_t other = fork();
                if (other == 0) {
                  kill(parent, sent);
                  _exit(0);
                }
                waitpid(other, nullptr, 0);  // the signal has arrived by then
              }),
              Words("", signal));
  }
}

TEST(LastWords, P31SignalFromOwnProcessNamesJobAndEndsProcess) {
  EXPECT_EQ(last_words([] {
              const WorksOn works(3);
              raise(SIGSEGV);
            }),
            Words("crash 3 1.2\n", SIGSEGV));
}

TEST(LastWords, NameTheJobOfAnExceptionThatEndsTheProcess) {
  EXPECT_EQ(last_words([] {
              try {
                const WorksOn works(9);
                throw std::runtime_error("");
              } catch (...) {
                std::abort();
              }
            }),
            Words("crash 9 1.2\n", SIGABRT));
}

}  // namespace
}  // namespace muster
