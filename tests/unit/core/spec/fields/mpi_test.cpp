#include "core/spec/fields/mpi.hpp"

#include "core/spec/fields/annotations.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(Mpi, ParsesOptions) {
  EXPECT_EQ(*parse_mpi("auto"), MpiOptions{});
  EXPECT_EQ(*parse_mpi("openmpi,slots=4096"),
            (MpiOptions{MpiKind::openmpi, 4096, "", false, false}));
  EXPECT_EQ(*parse_mpi("mpich,iface=ib0,slots=2"),
            (MpiOptions{MpiKind::mpich, 2, "ib0", false, false}));
  EXPECT_EQ(*parse_mpi("mpich,direct"), (MpiOptions{MpiKind::mpich, 1, "", false, true}));
}

TEST(Mpi, RejectsInvalidOptions) {
  for (const char* text : {"",
                           ",",
                           "true",
                           "slots=4",
                           "auto,",
                           "auto,slots=",
                           "auto,slots=0",
                           "auto,slots=4097",
                           "auto,slots=-1",
                           "auto,slots=4x",
                           "auto,slots=99999999999999999999",
                           "auto,iface=",
                           "auto,iface=..",
                           "auto,iface=a/b",
                           "auto,iface=0123456789abcdef",
                           "auto,iface=$(id)",
                           "auto, slots=4",
                           "auto,direct",
                           "openmpi,direct",
                           "mpich,direct,slots=2",
                           "AUTO"})
    EXPECT_FALSE(parse_mpi(text).ok()) << text;
  EXPECT_EQ(parse_mpi("auto,slot=4").error().message,
            "unknown option \"slot=4\"; the options are slots=N, iface=NAME, ssh-shim and direct");
}

TEST(Mpi, MakesTheJobAGang) {
  EXPECT_TRUE(read_annotations({{"muster.dev/mpi", "auto"}}).gang);
  EXPECT_FALSE(read_annotations({{"muster.dev/mpi", "auto"}, {"muster.dev/gang", "false"}}).gang);
  EXPECT_FALSE(read_annotations({{"muster.dev/mpi", "oops"}}).gang);
}

}  // namespace
}  // namespace muster::core
