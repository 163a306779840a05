// What a typed command inherits from its shell besides the environment.
#include "client/settings/submitter.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>

namespace muster::cli {
namespace {

TEST(Submitter, TakesUmaskAndSoftLimitsOfItsShell) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit fewer{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
  const mode_t mask = umask(0137);
  const core::ProcessSettings settings = shell_settings();
  EXPECT_EQ(umask(mask), 0137u);  // it is still that of this process
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(settings.umask, 0137u);
  EXPECT_FALSE(settings.nice);
  EXPECT_EQ(settings.soft_limits.at("nofile"), 100u);
  EXPECT_TRUE(settings.soft_limits.contains("stack"));
  // These say what a machine has to give.
  EXPECT_FALSE(settings.soft_limits.contains("memlock"));
  EXPECT_FALSE(settings.soft_limits.contains("nproc"));
  // What it sends is what the API accepts.
  core::StringMap annotations;
  core::write_process_settings(settings, annotations);
  EXPECT_EQ(core::read_process_settings(annotations), settings);
}

}  // namespace
}  // namespace muster::cli
