// Volumes in manifests: the rules, with Kubernetes' wording.
#include "core/cluster/nodes/demand.hpp"
#include "core/spec/fields/image_runtime.hpp"
#include "core/spec/rules/validation.hpp"
#include "tests/unit/core/sample_job.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace muster::core {
namespace {

const std::string kPod = "spec.template.spec";
const std::string kVolume = kPod + ".volumes[0]";
const std::string kMount = kPod + ".containers[0].volumeMounts[0]";

Volume empty_dir(const std::string& name) {
  Volume volume;
  volume.name = name;
  return volume;
}

Volume host_path(const std::string& path, const std::string& type = "") {
  Volume volume = empty_dir("v");
  volume.kind = VolumeKind::host_path;
  volume.kinds = 1;
  volume.path = path;
  volume.type = type;
  return volume;
}

Volume secret(const std::string& name, std::vector<VolumeItem> items = {}) {
  Volume volume = empty_dir("v");
  volume.kind = VolumeKind::secret;
  volume.kinds = 1;
  volume.secret = name;
  volume.items = std::move(items);
  return volume;
}

Volume limited(const std::string& limit, const std::string& medium = "") {
  Volume volume = empty_dir("v");
  volume.size_limit = limit;
  volume.medium = medium;
  return volume;
}

struct Row {
  const char* rule;
  std::vector<Volume> volumes;
  std::vector<VolumeMount> mounts;
  std::multiset<std::string> expected;
};

TEST(Volumes, ViolationsNameInvalidFields) {
  Volume two = host_path("/d");
  two.kinds = 2;
  Volume mode = secret("db");
  mode.default_mode = 01000;
  const Row rows[] = {
      {"as it should be", {empty_dir("v")}, {{"v", "/data", "a/b", true}}, {}},
      {"no name", {empty_dir("")}, {}, {kVolume + ".name Required"}},
      {"bad name", {empty_dir("A_b")}, {}, {kVolume + ".name Invalid"}},
      {"twice", {empty_dir("v"), empty_dir("v")}, {}, {kPod + ".volumes[1].name Duplicate"}},
      {"two kinds", {two}, {}, {kVolume + " Forbidden"}},
      {"limit", {limited("1Gi")}, {}, {}},
      {"no quantity", {limited("big")}, {}, {kVolume + ".emptyDir.sizeLimit Invalid"}},
      {"below 0", {limited("-1")}, {}, {kVolume + ".emptyDir.sizeLimit Forbidden"}},
      {"medium", {limited("", "HugePages")}, {}, {kVolume + ".emptyDir.medium NotSupported"}},
      {"host", {host_path("/d", "DirectoryOrCreate")}, {}, {}},
      {"no path", {host_path("")}, {}, {kVolume + ".hostPath.path Required"}},
      {"dots", {host_path("/a/../b")}, {}, {kVolume + ".hostPath.path Invalid"}},
      {"relative", {host_path("a")}, {}, {kVolume + ".hostPath.path Invalid"}},
      {"type", {host_path("/d", "BlockDevice")}, {}, {kVolume + ".hostPath.type NotSupported"}},
      {"secret", {secret("db", {{"k", "a/b", 0400}})}, {}, {}},
      {"no secret", {secret("")}, {}, {kVolume + ".secret.secretName Required"}},
      {"mode", {mode}, {}, {kVolume + ".secret.defaultMode Invalid"}},
      {"items",
       {secret("db", {{"", "", {}}, {"a/b", "/x", 8}, {"k", "../x", 07777}})},
       {},
       {kVolume + ".secret.items[0].key Required", kVolume + ".secret.items[0].path Required",
        kVolume + ".secret.items[1].key Invalid", kVolume + ".secret.items[1].path Invalid",
        kVolume + ".secret.items[2].path Invalid", kVolume + ".secret.items[2].mode Invalid"}},
      {"no volume", {}, {{"v", "/d", "", false}}, {kMount + ".name NotFound"}},
      {"no mount path", {empty_dir("v")}, {{"v", "", "", false}}, {kMount + ".mountPath Required"}},
      {"relative mount",
       {empty_dir("v")},
       {{"v", "d", "", false}},
       {kMount + ".mountPath Invalid"}},
      {"root", {empty_dir("v")}, {{"v", "//", "", false}}, {kMount + ".mountPath Invalid"}},
      {"one path twice",
       {empty_dir("v")},
       {{"v", "/d", "", false}, {"v", "/d", "x", false}},
       {kPod + ".containers[0].volumeMounts[1].mountPath Invalid"}},
      {"sub path", {empty_dir("v")}, {{"v", "/d", "../x", false}}, {kMount + ".subPath Invalid"}},
      {"absolute sub path",
       {empty_dir("v")},
       {{"v", "/d", "/x", false}},
       {kMount + ".subPath Invalid"}},
  };
  for (const Row& row : rows) {
    SampleJob job = SampleJob::bare();
    job.spec.pod.volumes = row.volumes;
    job.spec.pod.containers[0].volume_mounts = row.mounts;
    job.admit();
    EXPECT_EQ(summary(validate_create(job.meta, job.spec)), row.expected) << row.rule;
  }
}

TEST(Volumes, ContainersMayShareMemoryVolume) {
  SampleJob job = SampleJob::bare();
  job.spec.pod.volumes = {limited("1Gi", "Memory")};
  job.spec.pod.containers[0].volume_mounts = {{"v", "/a", "", false}, {"v", "/b", "", false}};
  job.spec.pod.init_containers = job.spec.pod.containers;
  job.spec.pod.init_containers[0].name = "first";
  job.spec.pod.init_containers[0].volume_mounts.pop_back();
  job.admit();
  EXPECT_EQ(summary(validate_create(job.meta, job.spec)), std::multiset<std::string>());
}

TEST(Volumes, PodsWithMountsSelectNodesThatCanMount) {
  JobObject job;
  job.spec.pod.containers.emplace_back();
  job.spec.pod.volumes = {empty_dir("v")};
  EXPECT_TRUE(demand_of(job).node_selector.empty());  // any node can make a directory
  job.spec.pod.containers[0].volume_mounts = {{"v", "/d", "", false}};
  const StringMap expected = {{std::string(kVolumesLabel), "true"}};
  EXPECT_EQ(demand_of(job).node_selector, expected);
  job.spec.pod.containers[0].volume_mounts.clear();
  job.meta.annotations[std::string(kPrivateTmpKey)] = "true";
  EXPECT_EQ(demand_of(job).node_selector, expected);
}

TEST(ImageRuntime, WrapsCommandWithImage) {
  for (const char* wrong : {"", "apptainer exec", "{image}", "  {image} x"})
    EXPECT_FALSE(ImageRuntime::parse(wrong)) << wrong;
  auto runtime = ImageRuntime::parse("  apptainer  exec docker://{image} ");
  ASSERT_TRUE(runtime);
  Container one{.name = "a", .image = "a$(B)c", .command = {"sh", "$(X)"}, .args = {"y"}};
  runtime->wrap(one);
  EXPECT_EQ(one.command,
            (std::vector<std::string>{"apptainer", "exec", "docker://a$$(B)c", "sh", "$(X)"}));
  EXPECT_EQ(one.args, std::vector<std::string>{"y"});
  Container plain{.name = "a", .command = {"sh"}};
  runtime->wrap(plain);
  EXPECT_EQ(plain.command, std::vector<std::string>{"sh"});
  ImageRuntime().wrap(one);
  EXPECT_EQ(one.command.size(), 5u);
}

TEST(ImageRuntime, RefusesContainersThatCannotStart) {
  const auto runtime = ImageRuntime::parse("podman run {image}");
  auto refused = [](const ImageRuntime& runtime, const Container& container) {
    Violations found;
    PodTemplate pod;
    pod.containers = {container};
    runtime.validate(pod, found);
    return !found.empty();
  };
  const Container image{.name = "a", .image = "i"}, nothing{.name = "a"},
      command{.name = "a", .image = "i", .command = {"true"}}, args{.name = "a", .args = {"true"}};
  EXPECT_TRUE(refused({}, image));
  EXPECT_TRUE(refused({}, nothing));
  EXPECT_FALSE(refused({}, command));
  EXPECT_FALSE(refused({}, args));
  EXPECT_FALSE(refused(*runtime, image));
  EXPECT_TRUE(refused(*runtime, nothing));
}

}  // namespace
}  // namespace muster::core
