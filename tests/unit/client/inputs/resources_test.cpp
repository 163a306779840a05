#include "client/inputs/resources.hpp"

#include "client/terminal/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using testing::HasSubstr;

Json bare() {
  return read_json(R"({"spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}})");
}

TEST(Resources, WrongValueIsRefusedWithExample) {
  const struct {
    Status (*read)(const std::string& text, ResourceWishes& into);
    const char *text, *said;
  } cases[] = {
      {read_cpus, "two", "--cpus: `two`: must be a number above 0, such as 2, 0.5 or 500m"},
      {read_cpus, "0", "--cpus: `0`: must be"},
      {read_cpus, "-1", "--cpus: `-1`: must be"},
      {read_memory, "4096", "--mem: `4096`: needs a unit, such as 4096Mi"},
      {read_memory, "4GB", "--mem: `4GB`: must be an amount such as 512Mi or 4Gi"},
      {read_memory, "100m", "--mem: `100m`: must be"},
      {read_memory, "1e400", "--mem: `1e400`: must be at most 1Pi"},
      {read_gpus, "0", "--gpus: `0`: must be"},
      {read_gpus, "=1", "--gpus: `=1`: must be"},
      {read_gpus, "a100", "--gpus: `a100`: must be"},
      {read_time, "1.5",
       "--time: `1.5`: must have a unit: 1.5s are seconds, 1.5m minutes, 1.5h hours"},
      {read_grace, "30", "--grace: `30`: must have a unit: 30s are seconds"},
      {read_retry_time, "2h,8", "--retry-time: `8`: must have a unit: 8s are seconds"},
      {read_ttl, "7", "--ttl: `7`: must have a unit: 7s are seconds"},
      {read_time, "0", "--time: `0`: for no limit, leave --time out"},
      {read_time, "UNLIMITED", "--time: `UNLIMITED`: for no limit, leave --time out"},
      {read_time, "3", "--time: `3`: needs a unit: for minutes, as in sbatch, write 3m or 0:03:00"},
      {read_time, "90", "write 90m or 1:30:00"},
      {read_time, "0s", "--time: `0s`: must be a duration such as 90m, 1h30m, 1:30:00 or 2-12:00"},
      {read_time, "1:75:00", "--time: `1:75:00`: must be"},
      {read_time, "1:2:3:4", "--time: `1:2:3:4`: must be"},
      {read_time, "1-", "--time: `1-`: must be"},
      {read_time, "1:005:00", "--time: `1:005:00`: must be"},
      {read_signal, "KILL@60", "--signal: `KILL@60`: must be SIGNAL@TIME, such as USR1@2m"},
      {read_grace, "soon", "--grace: `soon`: must be a duration such as 90s or 5m"},
      {read_node_label, "ssd", "--node-selector: `ssd`: must be LABEL=VALUE"},
      {read_node_label, "=ssd", "--node-selector: `=ssd`: must be"},
  };
  for (const auto& [read, text, said] : cases) {
    ResourceWishes wishes;
    const Status right = read(text, wishes);
    ASSERT_FALSE(right) << text;
    EXPECT_THAT(right.error().message, HasSubstr(said));
  }
}

TEST(Resources, ReadsGoAndSlurmTimes) {
  const std::pair<const char*, int64_t> cases[] = {
      {"90m", 5'400},         {"1h30m", 5'400},        {"2:30", 150},       {"30:00", 1'800},
      {"1-12", 129'600},      {"1-0:30", 88'200},      {"1-0:0:0", 86'400}, {"1:30:00", 5'400},
      {"100:00:01", 360'001}, {"2-00:00:00", 172'800}, {"100ms", 1}};
  for (const auto& [text, seconds] : cases) {
    ResourceWishes wishes;
    EXPECT_TRUE(read_time(text, wishes)) << text;
    EXPECT_EQ(wishes.time_s, seconds) << text;
  }
}

TEST(Resources, SignalComesBeforeTimeLimit) {
  ResourceWishes wishes;
  ASSERT_TRUE(read_signal("USR1@2m", wishes));
  EXPECT_THAT(check_signal(wishes).error().message, HasSubstr("--signal needs --time"));
  ASSERT_TRUE(read_time("2m", wishes));
  EXPECT_THAT(check_signal(wishes).error().message, HasSubstr("must come later than the start"));
  ASSERT_TRUE(read_time("1h", wishes));
  EXPECT_TRUE(check_signal(wishes));
  ASSERT_TRUE(read_grace("90s", wishes));
  wishes.max_fails = 0;
  const Json manifest = with_resources(bare(), wishes);
  EXPECT_EQ(manifest["metadata"]["annotations"]["muster.dev/signal"], "USR1@2m");
  EXPECT_EQ(manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 90);
  EXPECT_EQ(manifest["spec"]["maxFailedIndexes"], 0);
}

TEST(Resources, NoRequestsLeaveManifestUnchanged) {
  EXPECT_EQ(with_resources(bare(), {}), bare());
}

TEST(Resources, GpusOfOtherVendorsKeepTheirName) {
  ResourceWishes wishes;
  ASSERT_TRUE(read_gpus("amd.com/gpu=2", wishes));
  const Json manifest = with_resources(bare(), wishes);
  EXPECT_EQ(manifest["spec"]["template"]["spec"]["containers"][0]["resources"],
            (Json{{"requests", {{"amd.com/gpu", "2"}}}, {"limits", {{"amd.com/gpu", "2"}}}}));
}

// Without a coordinator, what does not fit here never starts.
TEST(Resources, ThisMachineMustHaveWhatIsRequested) {
  const MachineRoom room{2, int64_t{4} << 30};
  const auto said = [&room](const ResourceWishes& wishes, int64_t pods = 1) {
    const Status fits = fits_here(wishes, pods, room);
    return fits ? "" : fits.error().message;
  };
  ResourceWishes wishes;
  EXPECT_EQ(said(wishes, 1'000'000), "");
  wishes.cpus = "2";
  EXPECT_EQ(said(wishes), "");
  EXPECT_THAT(said(wishes, 2), HasSubstr("has 2 CPUs, and 2 pods that start together need 2 each"));
  wishes.cpus = "1001m";
  EXPECT_EQ(said(wishes), "");
  EXPECT_THAT(said(wishes, 2), HasSubstr("need 1001m each"));
  wishes.cpus = "2.1";
  EXPECT_EQ(said(wishes),
            "this machine has 2 CPUs, and a pod needs 2.1; select a coordinator "
            "whose nodes have more with --api or MUSTER_API");
  wishes = {};
  wishes.memory = "4Gi";
  EXPECT_EQ(said(wishes), "");
  EXPECT_THAT(said(wishes, 2), HasSubstr("has 4096Mi of memory, and 2 pods"));
  wishes.memory = "4097Mi";
  EXPECT_THAT(said(wishes), HasSubstr("has 4096Mi of memory, and a pod needs 4097Mi"));
  wishes = {};
  wishes.devices["nvidia.com/gpu"] = 1;
  EXPECT_THAT(said(wishes), HasSubstr("has no nvidia.com/gpu to give"));
}

TEST(Resources, DependenciesMayHaveTheWordsOfSlurm) {
  ResourceWishes wishes;
  for (const char* text : {"afterok:a", "afternotok:b", "afterany:c", "aftercorr:d", "ok:e"})
    EXPECT_TRUE(read_after(text, wishes).ok()) << text;
  EXPECT_EQ(wishes.after, "ok:a,notok:b,any:c,each:d,ok:e");
  EXPECT_FALSE(read_after("after:a", wishes).ok()) << "Slurm's: has started";
}

}  // namespace
}  // namespace muster::cli
