#include "cli/verbs/daemons/running_settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

struct RunningSettingsTest : testing::Test {
  std::string dir = testing::TempDir() + "muster-running-XXXXXX";
  RunningSettingsTest() { EXPECT_NE(mkdtemp(dir.data()), nullptr); }
  ~RunningSettingsTest() override { fs::remove_all(dir); }

  std::string file() const { return dir + "/c.yaml"; }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
  SettingsSource start(const Flags& flags = {}) const {
    const Config config;
    auto settings = config.resolve(Section::coordinator, flags, file());
    EXPECT_TRUE(settings.ok());
    return source_of(*settings, config, file());
  }
  RunningSettings found() const {
    auto running = find_running_settings(Section::coordinator, dir);
    EXPECT_TRUE(running.ok()) << running.error().message;
    return *running;
  }
  static std::string change(const RunningSettings& running, const std::string& key) {
    auto changes = changed_settings(running);
    EXPECT_TRUE(changes.ok());
    const auto one = changes->find(key);
    return one == changes->end() ? "" : one->second.text() + " " + one->second.from;
  }
  // The error for this text in settings.json.
  std::string trouble(const std::string& text) const {
    std::ofstream(dir + "/settings.json") << text;
    auto running = find_running_settings(Section::coordinator, dir);
    return running.ok() ? "" : running.error().message;
  }
};

TEST_F(RunningSettingsTest, AreReadAsTheyWereWritten) {
  write("data-dir: d\nusers: [hpc, bio]\n");
  const SettingsSource source = start({{"node-grace", {"1m"}}});
  tell_settings(source, dir);
  struct stat info = {};
  ASSERT_EQ(stat((dir + "/settings.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const RunningSettings running = found();
  EXPECT_EQ(running, running_settings(source));
  EXPECT_EQ(running.pid, getpid());
  EXPECT_EQ(running.given_file, file());
  const auto of = [&running](const std::string& key) {
    for (const RunningSetting& one : running.settings)
      if (one.key == key) return one;
    return RunningSetting();
  };
  EXPECT_EQ(of("users"), (RunningSetting{.key = "users",
                                         .values = {"hpc", "bio"},
                                         .list = true,
                                         .reloads = true,
                                         .from = file() + ":2"}));
  EXPECT_EQ(of("node-grace"),
            (RunningSetting{
                .key = "node-grace", .values = {"1m"}, .fixed = true, .from = "--node-grace"}));
  EXPECT_EQ(of("ca-cert").values, std::vector<std::string>{});
}

TEST_F(RunningSettingsTest, NameWhatItsFilesSayNow) {
  write("data-dir: d\nusers: [hpc]\nplacement: spread\nnode-grace: 50s\n");
  tell_settings(start({{"node-grace", {"1m"}}}), dir);
  EXPECT_TRUE(changed_settings(found())->empty());
  write("data-dir: d\nusers: [hpc, bio]\nnode-grace: 2m\n");
  const RunningSettings running = found();
  EXPECT_EQ(change(running, "users"), "hpc,bio " + file() + ":2");
  EXPECT_EQ(change(running, "placement"), "pack default") << "no longer in the file";
  EXPECT_EQ(change(running, "node-grace"), "") << "its flag stays";
  EXPECT_EQ(change(running, "data-dir"), "");
  write("data-dir: d\nusrs: [hpc]\n");
  EXPECT_NE(changed_settings(running).error().message.find(":2: unknown key usrs"),
            std::string::npos);
}

TEST_F(RunningSettingsTest, OfAnotherReleaseMayHaveUnknownKeys) {
  write("data-dir: d\n");
  RunningSettings running = running_settings(start());
  running.settings.push_back({.key = "warp", .values = {"9"}, .fixed = true, .from = "--warp"});
  auto read = parse_running_settings(text_of(running));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, running);
  EXPECT_TRUE(changed_settings(*read)->empty());
}

TEST_F(RunningSettingsTest, OfNoRunningDaemonAreAnError) {
  const std::string none = "no coordinator is running on " + dir;
  EXPECT_TRUE(find_running_settings(Section::coordinator, dir).error().message.starts_with(none));
  write("data-dir: d\n");
  const pid_t child = fork();
  if (child == 0) {
    tell_settings(start(), dir);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  auto ended = find_running_settings(Section::coordinator, dir);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Errc::unavailable);
  EXPECT_EQ(ended.error().message,
            none + "; the last one, pid " + std::to_string(child) + ", has ended");
  // Another process has its pid.
  RunningSettings other = running_settings(start());
  ++other.ticks;
  EXPECT_TRUE(trouble(text_of(other)).starts_with(none));
}

TEST_F(RunningSettingsTest, OfAnotherKindAreAnError) {
  EXPECT_EQ(trouble("muster"), dir + "/settings.json: it is not a JSON object");
  EXPECT_EQ(trouble(R"({"format": 2})"),
            dir +
                "/settings.json: its format is 2; known: 1. Use the muster of the daemon's "
                "release");
  write("data-dir: d\n");
  RunningSettings agent = running_settings(start());
  agent.section = Section::agent;
  EXPECT_EQ(trouble(text_of(agent)), dir + " is the directory of an agent, not of a coordinator");
}

}  // namespace
}  // namespace muster::cli
