#include "client/settings/reload.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace muster::cli {
namespace {

using Lines = std::vector<std::string>;

struct ReloadTest : testing::Test {
  std::string file = testing::TempDir() + "muster-reload-" + std::to_string(getpid()) + ".yaml";
  ~ReloadTest() override { std::filesystem::remove(file); }

  void write(const std::string& text) const { std::ofstream(file) << text; }
  SettingsSource start(const Config& config, const Flags& flags = {}) const {
    auto settings = config.resolve(Section::coordinator, flags, file);
    EXPECT_TRUE(settings.ok());
    return source_of(*settings, config, file);
  }
};

TEST_F(ReloadTest, TakesWhatReloadsAndNamesTheRest) {
  write("data-dir: d\nusers: [hpc]\nnode-grace: 40s\n");
  const SettingsSource source = start(Config());
  write("data-dir: d\nusers: [hpc, bio]\nnode-grace: 1m\nlog-level: debug\n");
  auto read = source.read();
  ASSERT_TRUE(read.ok());
  const Reload found = reload(source.now, *read);
  EXPECT_EQ(found.taken, (Lines{"users: hpc -> hpc,bio (" + file + ":2)",
                                "log-level: info -> debug (" + file + ":4)"}));
  EXPECT_EQ(found.later, (Lines{"node-grace: 40s -> 1m (" + file + ":3)"}));
  EXPECT_EQ(found.settings.text("users"), "hpc,bio");
  EXPECT_EQ(found.settings.text("node-grace"), "40s") << "still in effect";
  // What was named is named again; what was taken is not.
  const Reload again = reload(found.settings, *read);
  EXPECT_EQ(again.taken, Lines{});
  EXPECT_EQ(again.later, found.later);
}

TEST_F(ReloadTest, FlagsAndVariablesStayAsTheyWereAtTheStart) {
  write("data-dir: d\nlog-level: warn\nnode-grace: 50s\n");
  bool forgotten = false;
  const Config config([&forgotten](const char* name) -> const char* {
    return !forgotten && std::string(name) == "MUSTER_COORDINATOR_NODE_GRACE" ? "30s" : nullptr;
  });
  const SettingsSource source = start(config, {{"log-level", {"error"}}});
  forgotten = true;
  auto read = source.read();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->text("log-level"), "error");
  EXPECT_EQ(read->text("node-grace"), "30s");
  const Reload found = reload(source.now, *read);
  EXPECT_TRUE(found.taken.empty() && found.later.empty());
}

TEST_F(ReloadTest, AFileThatCannotBeReadIsAnError) {
  write("data-dir: d\n");
  const SettingsSource source = start(Config());
  write("data-dir: d\nnode-grce: 1s\n");
  EXPECT_FALSE(source.read().ok());
}

}  // namespace
}  // namespace muster::cli
