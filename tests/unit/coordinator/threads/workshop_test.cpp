// Workshop: runs work in order, finishes what it has begun, drops the rest.
#include "coordinator/threads/workshop.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

namespace muster::coordinator {
namespace {

TEST(Workshop, WorksInOrder) {
  Workshop shop;
  std::vector<int> done;
  std::promise<void> all;
  for (int i = 0; i < 100; ++i) shop.give([&done, i] { done.push_back(i); });
  shop.give([&all] { all.set_value(); });
  all.get_future().wait();
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
}

TEST(Workshop, StopFinishesRunningTaskAndDropsTheRest) {
  Workshop shop;
  std::promise<void> begun, go;
  bool finished = false;
  auto dropped = std::make_shared<int>(0);
  shop.give([&] {
    begun.set_value();
    go.get_future().wait();
    finished = true;
  });
  shop.give([dropped] { ++*dropped; });
  begun.get_future().wait();
  std::thread stops([&shop] { shop.stop(); });
  go.set_value();
  stops.join();
  EXPECT_TRUE(finished);
  shop.give([dropped] { ++*dropped; });
  shop.stop();
  EXPECT_LE(*dropped, 1);  // it may have begun before the stop
  EXPECT_EQ(dropped.use_count(), 1) << "nothing holds on to what is dropped";
}

}  // namespace
}  // namespace muster::coordinator
