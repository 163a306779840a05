// What a container of a pod with volumes sees, and how it is encoded.
#include "core/node/space.hpp"

#include "core/node/command.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::core::node {
namespace {

PodTemplate sample() {
  PodTemplate job;
  job.job = 7;
  job.job_name = "j";
  job.containers.emplace_back().what.name = "main";
  job.containers[0].what.command = {"true"};
  Volume memory{.name = "mem"};
  memory.medium = "Memory";
  memory.size_limit = "1Mi";
  Volume disk{.name = "disk"};
  disk.size_limit = "2k";
  Volume host{.name = "host", .kind = VolumeKind::host_path};
  host.path = "/data";
  Volume secret{.name = "key", .kind = VolumeKind::secret};
  secret.secret = "db";
  job.volumes = {memory, disk, host, secret};
  return job;
}

constexpr PodId kPod{7, 12, 3};

TEST(Space, HasTheMountsOfTheContainer) {
  PodTemplate job = sample();
  job.containers[0].what.volume_mounts = {
      {"disk", "/b//c/", "", false}, {"mem", "/b", "", false}, {"key", "/a", "", true}};
  const Space space = space_of(job, 0, kPod, {"/scratch", "/memory", "/home/ada"}, false);
  EXPECT_EQ(space.pod_dir, "/scratch/7.12.3");
  EXPECT_EQ(space.dirs, (std::vector<SpaceDir>{{"disk", 2000}}));
  ASSERT_EQ(space.mounts.size(), 3u);
  EXPECT_EQ(space.mounts[0].mount.mount_path, "/a");
  EXPECT_EQ(space.mounts[0].source, "/home/ada/.config/muster/secrets/db");
  EXPECT_EQ(space.mounts[1].mount.mount_path, "/b");  // parents before what is mounted below them
  EXPECT_EQ(space.mounts[1].limit_bytes, uint64_t{1} << 20);
  EXPECT_EQ(space.mounts[2].mount.mount_path, "/b/c");
  EXPECT_EQ(space.mounts[2].source, "/scratch/7.12.3/disk");
  EXPECT_TRUE(space.mounted());
}

TEST(Space, IsOnlyDirectoriesWithoutMounts) {
  const PodTemplate job = sample();
  const Space space = space_of(job, 0, kPod, {"/scratch", "/memory", ""}, false);
  EXPECT_TRUE(space.any());
  EXPECT_FALSE(space.mounted());
  const Space with_tmp = space_of(job, 0, kPod, {"/scratch", "/memory", ""}, true);
  EXPECT_TRUE(with_tmp.mounted());
  EXPECT_EQ(with_tmp.dirs.size(), 3u);
  EXPECT_FALSE(has_space(PodTemplate{}));
  EXPECT_EQ(plan_of(PodTemplate{}), nullptr);  // a pod without volumes needs no plan
  EXPECT_NE(plan_of(job), nullptr);
}

TEST(Space, SharedMemoryVolumeIsDirectory) {
  PodTemplate job = sample();
  job.containers[0].what.volume_mounts = {{"mem", "/m", "", false}};
  EXPECT_FALSE(shares_memory(job));
  job.containers.push_back(job.containers[0]);
  EXPECT_TRUE(shares_memory(job));
  const Space space = space_of(job, 1, kPod, {"/scratch", "/memory", ""}, false);
  EXPECT_EQ(space.memory_dir, "/memory/7.12.3");
  EXPECT_EQ(space.memory_dirs, (std::vector<SpaceDir>{{"mem", uint64_t{1} << 20}}));
  ASSERT_EQ(space.mounts.size(), 1u);
  EXPECT_EQ(space.mounts[0].source, "/memory/7.12.3/mem");
  EXPECT_EQ(space.mounts[0].limit_bytes, 0u);
  job.containers[1].what.volume_mounts = {{"disk", "/m", "", false}};
  EXPECT_FALSE(shares_memory(job));
}

TEST(Space, RoundTrips) {
  PodTemplate job = sample();
  job.containers.push_back(job.containers[0]);
  job.containers[1].what.volume_mounts = {{"mem", "/m", "", false}};
  for (const Volume& volume : job.volumes)
    job.containers[0].what.volume_mounts.push_back({volume.name, "/" + volume.name, "s", true});
  const Space space = space_of(job, 0, kPod, {"/scratch", "/memory", "/home/ada"}, true);
  std::string bytes, again;
  Writer out(bytes), out_again(again);
  write_space(out, space);
  Reader in(bytes);
  write_space(out_again, read_space(in));
  EXPECT_TRUE(in.ok() && in.rest().empty());
  EXPECT_EQ(bytes, again);
}

TEST(Space, DirectoryNamesRoundTripPodIds) {
  EXPECT_EQ(pod_of_dir(pod_dir_name(kPod)), kPod);
  for (const char* wrong : {"", "7", "7.12", "7.12.3.4", "07.12.3", "7.12.x", ".gone-1", "-7.1.1"})
    EXPECT_FALSE(pod_of_dir(wrong)) << wrong;
}

TEST(Space, ScratchIsTheFirstDirectoryOnDisk) {
  PodTemplate job = sample();
  const NodeFacts node{.node_name = "n", .start_dir = "/", .home = "/home/ada", .scratch = "/s"};
  auto scratch = [&]() -> std::string {
    const auto command = command_of(job, job.containers[0].what, kPod, node);
    for (const std::string& variable : command->env)
      if (variable.starts_with("MUSTER_SCRATCH=")) return variable.substr(15);
    return "none";
  };
  EXPECT_EQ(scratch(), "/s/7.12.3/disk");
  job.containers[0].what.volume_mounts = {{"disk", "/d", "sub", false}};
  EXPECT_EQ(scratch(), "/s/7.12.3/disk");
  job.containers[0].what.volume_mounts = {{"disk", "/d", "", false}};
  EXPECT_EQ(scratch(), "/d");
  job.volumes.resize(1);
  EXPECT_EQ(scratch(), "none");
}

}  // namespace
}  // namespace muster::core::node
