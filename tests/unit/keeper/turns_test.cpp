// Turns: users take turns, and the jobs of each.
#include "keeper/start/turns.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster::keeper {

namespace {

std::string popped(Turns<char>& turns) {
  std::string text;
  while (!turns.empty()) text += turns.pop();
  return text;
}

TEST(Turns, UsersComeBeforeTheirJobs) {
  Turns<char> turns;
  for (uint64_t job = 1; job <= 3; ++job)
    for (int i = 0; i < 2; ++i) turns.push_back(1001, job, static_cast<char>('a' + job - 1));
  for (int i = 0; i < 4; ++i) turns.push_back(1002, 9, 'z');
  EXPECT_EQ(popped(turns), "azbzczazbc");
}

TEST(Turns, OneThatCouldNotBeStartedIsTheNextOfItsJob) {
  Turns<char> turns;
  turns.push_back(0, 7, 'b');
  turns.push_back(0, 7, 'c');
  turns.push_front(0, 7, 'a');
  EXPECT_EQ(popped(turns), "abc");
}

TEST(Turns, RemovedOnesLeaveNoEmptyQueue) {
  Turns<char> turns;
  turns.push_back(1, 7, 'a');
  turns.push_back(1, 8, 'b');
  turns.push_back(2, 9, 'a');
  EXPECT_EQ(turns.remove([](char one) { return one == 'a'; }), 2u);
  EXPECT_EQ(turns.remove([](char one) { return one == 'x'; }), 0u);
  EXPECT_EQ(popped(turns), "b");
}

}  // namespace

}  // namespace muster::keeper
