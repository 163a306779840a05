#include "standby/protocols.hpp"

#include <gtest/gtest.h>

namespace muster::standby {
namespace {

TEST(StandbyProtocols, OneCommonVersionIsEnough) {
  const struct {
    Spoken leader, follower;
    const char* refused;
  } cases[] = {
      {{1, 1}, {1, 1}, ""},
      {{1, 2}, {1, 1}, ""},  // the follower is replaced first, or last
      {{1, 1}, {1, 2}, ""},
      {{2, 3}, {1, 2}, ""},
      {{1, 1}, {0, 1}, ""},  // it does not say its oldest
      {{2, 3},
       {1, 1},
       "it speaks version 1 of the protocol between coordinators, this one speaks versions 2 to 3: "
       "run neighbouring versions of muster on both machines"},
      {{1, 1},
       {2, 3},
       "it speaks versions 2 to 3 of the protocol between coordinators, this one speaks version 1: "
       "run neighbouring versions of muster on both machines"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(refused_protocol(one.leader, one.follower), one.refused)
        << one.leader.newest << " " << one.follower.newest;
}

}  // namespace
}  // namespace muster::standby
