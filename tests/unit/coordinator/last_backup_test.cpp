#include "coordinator/last_backup.hpp"

#include "base/files/private_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace muster::coordinator {
namespace {

TEST(LastBackup, IsKnownAfterARestart) {
  const std::string dir = testing::TempDir() + "muster-last-backup-" + std::to_string(getpid());
  EXPECT_EQ(last_backup(dir), std::nullopt);
  ASSERT_TRUE(note_backup(dir, 1'700'000'000'123).ok());
  EXPECT_EQ(last_backup(dir), 1'700'000'000'123);
  ASSERT_TRUE(note_backup(dir, 1'700'000'000'999).ok());
  EXPECT_EQ(last_backup(dir), 1'700'000'000'999);
  std::ofstream(dir + "/last-backup") << "yesterday\n";
  EXPECT_EQ(last_backup(dir), std::nullopt);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace muster::coordinator
