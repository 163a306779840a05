// Tasks run in order; those that may wait are gathered only while more keep coming.
#include "coordinator/threads/inbox.hpp"

#include <gtest/gtest.h>
#include <kj/timer.h>

#include <string>

namespace muster::coordinator {
namespace {

struct Gathering {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::TimePoint now = kj::origin<kj::TimePoint>();
  kj::TimerImpl timer{now};
  Inbox inbox{io.unixEventPort, timer};
  kj::Promise<void> tasks = inbox.run().eagerlyEvaluate(nullptr);
  std::string ran;

  void post(char name) {
    inbox.post([this, name] { ran += name; });
  }
  void post_waiting(char name) {
    inbox.post([this, name] { ran += name; }, Inbox::Wake::may_wait);
  }
  // What ran without the passing of time.
  std::string run() {
    io.waitScope.poll();
    return std::exchange(ran, "");
  }
  std::string after(kj::Duration time) {
    now += time;
    timer.advanceTo(now);
    return run();
  }
};

TEST(Inbox, RunsTasksInOrder) {
  Gathering here;
  here.post('a');
  here.post_waiting('b');
  here.post('c');
  EXPECT_EQ(here.run(), "abc");
}

TEST(Inbox, RunsLoneDeferrableTaskAtOnce) {
  Gathering here;
  here.post_waiting('a');
  EXPECT_EQ(here.run(), "a");
  EXPECT_EQ(here.after(Inbox::kGatherMin), "");
  here.post_waiting('b');
  EXPECT_EQ(here.run(), "b");
}

TEST(Inbox, GathersDeferrableTasksWhileMoreArrive) {
  Gathering here;
  here.post_waiting('a');
  EXPECT_EQ(here.run(), "a");
  here.post_waiting('b');
  here.post_waiting('c');
  EXPECT_EQ(here.run(), "");
  EXPECT_EQ(here.after(Inbox::kGatherMin), "bc");
  here.post_waiting('d');
  EXPECT_EQ(here.after(Inbox::kGatherMin), "");  // the pauses grow
  EXPECT_EQ(here.after(Inbox::kGatherMin), "d");
}

TEST(Inbox, NeverGathersForLongerThanItsLimit) {
  Gathering here;
  here.post_waiting('a');
  EXPECT_EQ(here.run(), "a");
  for (int i = 0; i < 20; ++i) {
    here.post_waiting('b');
    EXPECT_EQ(here.after(Inbox::kGatherMax), "b");
  }
}

TEST(Inbox, UrgentTaskRunsGatheredOnesToo) {
  Gathering here;
  here.post_waiting('a');
  EXPECT_EQ(here.run(), "a");
  here.post_waiting('b');
  here.post('c');
  EXPECT_EQ(here.run(), "bc");
  EXPECT_EQ(here.after(Inbox::kGatherMin), "");
  here.post_waiting('d');
  EXPECT_EQ(here.run(), "d");
}

TEST(Inbox, TasksPostedTogetherWakeItOnce) {
  Gathering here;
  Door door;
  door.open(here.inbox);
  door.together([&] {
    door.post([&] { here.ran += 'a'; });
    EXPECT_EQ(here.run(), "");
    door.together([&] { door.post([&] { here.ran += 'b'; }); });
    EXPECT_EQ(here.run(), "");
    here.inbox.post([&] { here.ran += 'c'; });  // another thread's takes them along
    EXPECT_EQ(here.run(), "abc");
    door.post([&] { here.ran += 'd'; });
  });
  EXPECT_EQ(here.run(), "d");
}

}  // namespace
}  // namespace muster::coordinator
