// A template's bytes bring back every field; unknown fields are skipped, or keep its pods from
// starting, as their tags say; damaged bytes are refused.
#include "core/node/template_codec.hpp"

#include "base/bytes.hpp"

#include <gtest/gtest.h>

namespace muster::core::node {
namespace {

PodTemplate full() {
  PodTemplate job{.job = 7, .generation = 3, .job_name = "n", .job_uid = "u", .ns = "ns"};
  job.owner_uid = 0;  // root is an owner, too: absent and 0 are not the same
  job.indexed = true;
  job.completions = 0;
  job.parallelism = 2;
  job.grace_ms = 30'000;
  job.restarts = true;
  job.restart_delay_ms = 5;
  job.active_deadline_ms = 6;
  job.fence_after_ms = 7;
  job.init_containers = 1;
  job.labels = {{"a", "b"}};
  job.annotations = {{"c", std::string("d\0e", 3)}};
  job.mpi = "auto";
  job.inputs = std::make_shared<const InputTable>(*InputTable::of("one\ntwo\n"));
  job.inputs_file = "/in";
  Volume volume{.name = "v", .kind = VolumeKind::config_map, .kinds = 1};
  volume.config_map = "settings";
  volume.items = {{"k", "p", 0}};
  volume.default_mode = 0644;
  volume.optional = true;
  job.volumes = {volume, {.name = "disk", .size_limit = "1Gi"}};
  job.private_tmp = true;
  job.process = {.nice = 0, .umask = 022, .soft_limits = {{"core", 0}}};
  job.configs["settings"] =
      std::make_shared<const ConfigData>(ConfigData{{{"k", "1"}}, {{"b", std::string(1, '\0')}}});
  TemplateContainer one;
  one.what.name = "main";
  one.what.command = {"sh", "-c", ""};
  one.what.args = {"x"};
  one.what.working_dir = "/w";
  one.what.env = {{.name = "A", .value = "1"},
                  {.name = "B", .field_path = "metadata.name"},
                  {.name = "C", .secret = SecretRef{"s", "k", true}},
                  {.name = "D", .config = ConfigKeyRef{"settings", "k", false}}};
  one.what.volume_mounts = {{"v", "/m", "sub", true}};
  one.what.env_from = {{"P_", "settings", true}};
  one.memory_limit_bytes = 1;
  one.cpu_limit_millis = 2;
  one.cpus = 4;
  one.devices = {{"nvidia.com/gpu", 3}};
  one.confinement = {0, 9, true, true, 1};
  job.containers = {TemplateContainer{}, one};
  return job;
}

// A copy in which every field is read back from bytes, or nothing.
PodTemplate round(const PodTemplate& job) {
  auto read = read_template(template_bytes(job));
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? *read : PodTemplate{};
}

TEST(TemplateCodec, BringsBackEveryField) {
  const PodTemplate was = full(), now = round(was);
  EXPECT_EQ(template_bytes(now), template_bytes(was));
  EXPECT_EQ(now.owner_uid, 0u);
  EXPECT_EQ(now.completions, 0);
  EXPECT_EQ(now.containers, was.containers);
  EXPECT_EQ(now.volumes, was.volumes);
  EXPECT_EQ(now.process, was.process);
  EXPECT_EQ(read_settings(settings_bytes(was.process)), was.process);
  EXPECT_EQ(settings_bytes({}), "");
  EXPECT_EQ(now.annotations, was.annotations);
  EXPECT_EQ(now.inputs->bytes(), was.inputs->bytes());
  EXPECT_EQ(*now.configs.at("settings"), *was.configs.at("settings"));
  EXPECT_EQ(now.config_needs.size(), 1u) << "they follow from the containers";
}

TEST(TemplateCodec, DefaultsTakeNoBytes) {
  EXPECT_EQ(template_bytes({}), "");
  EXPECT_EQ(round({}).completions, std::nullopt);
}

TEST(TemplateCodec, SkipsUnknownFieldUnlessItMustBeKnown) {
  std::string bytes = template_bytes(full());
  Writer(bytes).num(uint16_t{999}).text("later");
  auto read = read_template(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(template_bytes(*read), template_bytes(full()));
  EXPECT_EQ(read->refusal, "");
  Writer(bytes).num(static_cast<uint16_t>(kMustKnow | 999)).text("later");
  read = read_template(bytes);
  ASSERT_TRUE(read);
  EXPECT_NE(read->refusal.find("field 999"), std::string::npos) << read->refusal;
  EXPECT_EQ(read->job_name, "n") << "all else is there, to report and to clean up";
}

TEST(TemplateCodec, NoPrefixIsReadBeyondItsEnd) {
  const std::string bytes = template_bytes(full());
  size_t whole = 0;  // prefixes that end before one of the 25 fields are templates, too
  for (size_t size = 0; size < bytes.size(); ++size)
    whole += read_template(std::string_view(bytes).substr(0, size)).ok();
  EXPECT_LE(whole, 25u);
}

TEST(TemplateCodec, RefusesFieldOfWrongSizeAndCountsWithoutElements) {
  std::string bytes;
  Writer(bytes).num(uint16_t{1}).text("1234567");
  EXPECT_FALSE(read_template(bytes));
  bytes.clear();
  Writer(bytes).num(uint16_t{16}).text("\xff\xff\xff\xff");
  EXPECT_FALSE(read_template(bytes));
}

}  // namespace
}  // namespace muster::core::node
