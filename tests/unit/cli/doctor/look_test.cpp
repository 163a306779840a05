// Reading what the kernel and the coordinator say.
#include "cli/doctor/look.hpp"

#include "cli/doctor/report.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace muster::cli::doctor {
namespace {

TEST(Look, LimitsOfAProcess) {
  const LimitFacts facts = read_limits(
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max cpu time              3600                 unlimited            seconds   \n"
      "Max file size             unlimited            unlimited            bytes     \n"
      "Max processes             96365                96366                processes \n"
      "Max open files            1024                 524288               files     \n"
      "Max locked memory         8388608              8388608              bytes     \n"
      "Max address space         unlimited            unlimited            bytes     \n",
      "the keeper");
  EXPECT_TRUE(facts.known);
  EXPECT_EQ(facts.cpu_seconds, 3'600u);
  EXPECT_EQ(facts.file_bytes, kUnlimited);
  EXPECT_EQ(facts.processes, 96'365u);
  EXPECT_EQ(facts.open_files, 1'024u);
  EXPECT_EQ(facts.hard_open_files, 524'288u);
  EXPECT_EQ(facts.locked_bytes, 8'388'608u);
  EXPECT_FALSE(read_limits("Max cpu time  1 2 seconds\n", "x").known);
  EXPECT_FALSE(read_limits("", "x").known);
  EXPECT_TRUE(look_at_limits(0, "x").known) << "of this kernel";
}

TEST(Look, TypeOfMount) {
  const char* const mounts =
      "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
      "30 22 0:25 / /var rw shared:1 - xfs /dev/vdb rw\n"
      "31 30 0:26 / /var/lib/my\\040dir rw - tmpfs tmpfs rw\n"
      "32 22 0:27 / /mnt rw - nfs4 head:/export rw\n"
      "33 32 0:28 / /mnt rw - ext4 /dev/vdc rw\n";
  EXPECT_EQ(type_of_mount(mounts, "/home/x"), "ext4");
  EXPECT_EQ(type_of_mount(mounts, "/var"), "xfs");
  EXPECT_EQ(type_of_mount(mounts, "/various"), "ext4");
  EXPECT_EQ(type_of_mount(mounts, "/var/lib/my dir/w"), "tmpfs");
  EXPECT_EQ(type_of_mount(mounts, "/mnt/x"), "ext4") << "the later mount covers the earlier one";
  EXPECT_EQ(type_of_mount("", "/x"), "");
}

TEST(Look, HoldersOfLocks) {
  const char* const locks =
      "1: FLOCK  ADVISORY  WRITE 6526 fe:00:11035115 0 EOF\n"
      "2: POSIX  ADVISORY  WRITE 6507 00:2a:11035095 0 EOF\n"
      "2: -> POSIX  ADVISORY  WRITE 6508 00:2a:11035095 0 EOF\n"
      "3: FLOCK  ADVISORY  WRITE 6600 fe:00:1103511 0 EOF\n";
  EXPECT_EQ(holders_of(locks, 11'035'115), (std::vector{6'526}));
  EXPECT_EQ(holders_of(locks, 11'035'095), (std::vector{6'507}));
  EXPECT_EQ(holders_of(locks, 35'115), std::vector<int>());
}

TEST(Look, Metrics) {
  const char* const text =
      "# TYPE muster_last_backup_timestamp_seconds gauge\n"
      "muster_last_backup_timestamp_seconds_old 1\n"
      "muster_last_backup_timestamp_seconds 1785000000.5\n"
      "muster_x{certificate=\"authority\"} 2e9\n";
  EXPECT_EQ(metric(text, "muster_last_backup_timestamp_seconds"), 1785000000.5);
  EXPECT_EQ(metric(text, "muster_x{certificate=\"authority\"}"), 2e9);
  EXPECT_EQ(metric(text, "muster_x"), std::nullopt);
}

TEST(Look, HostsThatNeedALookUp) {
  for (const char* address : {"127.0.0.1:7117", "[::1]:7117", "unix:/run/x", "https://10.0.0.1:1"})
    EXPECT_EQ(look_up(address).host, "") << address;
  EXPECT_EQ(look_up("https://localhost:7443").host, "localhost");
  EXPECT_EQ(look_up("localhost:7443").error, "");
  EXPECT_NE(look_up("no-such-host.invalid:1").error, "");
}

TEST(Look, APlace) {
  std::string dir = testing::TempDir() + "muster-doctor-XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  const PlaceFacts facts = look_at_place(dir, true);
  EXPECT_TRUE(facts.there && facts.directory);
  EXPECT_EQ(facts.mode, 0700u);
  EXPECT_EQ(facts.owner, getuid());
  EXPECT_GT(facts.free_bytes, 0u);
  EXPECT_TRUE(facts.sync_us.has_value()) << facts.no_sync;
  EXPECT_TRUE(std::filesystem::is_empty(dir)) << "it leaves nothing behind";
  std::ofstream(dir + "/file") << "x";
  EXPECT_FALSE(look_at_place(dir + "/file", true).directory);
  EXPECT_FALSE(look_at_place(dir + "/none", true).there);
  std::filesystem::remove_all(dir);
}

TEST(Report, WorstFirstAndWhatIsOkOnlyOnDemand) {
  Findings node, client;
  node.ok("agent", "runs");
  node.warn("/tmp", "is small\n", "make room");
  client.problem("coordinator", "h:1: connection refused", "start it");
  const std::vector<Part> parts = {{"node", node.all()}, {"client", client.all()}};
  EXPECT_EQ(report_text(parts, false),
            "problem  client: coordinator: h:1: connection refused\n"
            "         -> start it\n"
            "warning  node: /tmp: is small\\n\n"
            "         -> make room\n"
            "1 problem, 1 warning in 3 checks of node and client\n");
  EXPECT_NE(report_text(parts, true).find("ok       node: agent: runs\n"), std::string::npos);
  EXPECT_TRUE(has_problem(parts));
  const Json json = report_json(parts);
  EXPECT_EQ(json["checks"], 3);
  EXPECT_EQ(json["problems"], 1);
  EXPECT_EQ(json["findings"][0]["advice"], "start it");
  EXPECT_EQ(json["findings"][2]["level"], "ok");

  const std::vector<Part> good = {{"node", {node.all()[0]}}};
  EXPECT_EQ(report_text(good, false), "nothing wrong in 1 check of node\n");
  EXPECT_FALSE(has_problem(good));
}

TEST(Finding, SizesAndTimes) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(3ull << 29), "1.5 GiB");
  EXPECT_EQ(size_text(100ull << 30), "100 GiB");
  EXPECT_EQ(micros_text(1'234), "1.2 ms");
  EXPECT_EQ(micros_text(56'789), "57 ms");
  EXPECT_EQ(micros_text(1'310'000), "1.31 s");
}

}  // namespace
}  // namespace muster::cli::doctor
