// Waiting for signals and for other threads.
#include "client/follow/signals.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace muster::cli {
namespace {

constexpr Millis kLong = 60'000;  // a test that waits this long exceeds its own time limit

// Runs `f` on its own thread, so that the signals that it blocks are blocked only there.
template <class F>
void apart(F f) {
  std::thread thread(f);
  thread.join();
}

TEST(Signals, WakeEndsTheWaitThatIsUnderWayOrTheNextOne) {
  apart([] {
    Signals signals;
    const Millis begin = boot_now();
    signals.wake();
    EXPECT_EQ(signals.next(kLong), 0);
    std::thread other([&signals] { signals.wake(); });
    EXPECT_EQ(signals.next(kLong), 0);
    other.join();
    EXPECT_LT(boot_now() - begin, kLong);
    EXPECT_EQ(signals.next(0), 0);
  });
}

TEST(Signals, SignalIsReportedBesidesWake) {
  apart([] {
    Signals signals;
    pthread_kill(pthread_self(), SIGTERM);
    signals.wake();
    const int first = signals.next(kLong), second = signals.next(kLong);
    EXPECT_EQ(first + second, SIGTERM);
    EXPECT_TRUE(first == 0 || second == 0);
  });
}

}  // namespace
}  // namespace muster::cli
