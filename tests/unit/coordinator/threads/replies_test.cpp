// Answers from other threads reach a promise on its own thread, and callbacks are destroyed only
// there.
#include "coordinator/threads/replies.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <thread>
#include <vector>

namespace muster::coordinator {
namespace {

// Counts its destructions on other threads.
struct Mortal {
  explicit Mortal(std::atomic<int>& e) : elsewhere(e) {}
  ~Mortal() {
    if (std::this_thread::get_id() != home) ++elsewhere;
  }
  std::atomic<int>& elsewhere;
  std::thread::id home = std::this_thread::get_id();
};

struct Waiting {
  std::shared_ptr<Door> door = std::make_shared<Door>();
  Replies replies{door};
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Inbox inbox{io.unixEventPort, io.provider->getTimer()};
  kj::Promise<void> tasks = nullptr;
  std::atomic<int> elsewhere{0};

  Waiting() {
    door->open(inbox);
    tasks = inbox.run().eagerlyEvaluate(nullptr);
  }
  ~Waiting() { door->shut(); }

  // A promise, and a function that fulfills it from any thread.
  std::pair<kj::Promise<int>, std::function<void(int)>> ask() {
    auto paf = kj::newPromiseAndFulfiller<int>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<int>>>(kj::mv(paf.fulfiller));
    auto mortal = std::make_shared<Mortal>(elsewhere);
    return {kj::mv(paf.promise),
            replies.across<int>([fulfiller, mortal](int v) { (*fulfiller)->fulfill(kj::cp(v)); })};
  }
};

TEST(Replies, ReachTheirPromisesFromManyThreads) {
  constexpr int kThreads = 3, kEach = 500;
  Waiting here;
  std::vector<kj::Promise<int>> promises;
  std::vector<std::vector<std::function<void(int)>>> answers(kThreads);
  for (int i = 0; i < kThreads * kEach; ++i) {
    auto [promise, answer] = here.ask();
    promises.push_back(kj::mv(promise));
    answers[static_cast<size_t>(i % kThreads)].push_back(answer);
  }
  std::vector<std::thread> threads;
  for (auto& mine : answers) {
    threads.emplace_back([&mine] {
      int number = 0;
      for (auto& answer : mine) {
        auto copy = answer;
        copy(++number);
        answer(0);  // a second answer is ignored
        answer = nullptr;
      }
    });
  }
  int64_t sum = 0;
  for (auto& promise : promises) sum += promise.wait(here.io.waitScope);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, int64_t{kThreads} * kEach * (kEach + 1) / 2);
  EXPECT_EQ(here.replies.waiting(), 0u);
  EXPECT_EQ(here.elsewhere, 0);
}

TEST(Replies, DroppedReplyRejectsPromise) {
  Waiting here;
  auto [promise, answer] = here.ask();
  std::thread([dropped = std::move(answer)]() mutable { dropped = nullptr; }).join();
  EXPECT_ANY_THROW(promise.wait(here.io.waitScope));
  EXPECT_EQ(here.replies.waiting(), 0u);
  EXPECT_EQ(here.elsewhere, 0);
}

TEST(Replies, ReplyAfterShutdownIsDropped) {
  std::function<void(int)> late;
  {
    Waiting here;
    late = here.ask().second;
    here.door->shut();
    late(1);
    here.replies.clear();
    EXPECT_EQ(here.elsewhere, 0);
  }
  late(2);
  late = nullptr;
}

}  // namespace
}  // namespace muster::coordinator
