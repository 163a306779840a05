#include "trust/permit/permit.hpp"

#include "core/node/template_codec.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

const std::string kSeed(64, '7');

Permit sample() {
  Permit permit{
      "cluster", "n1", 1'700'000'000'000, {1001, 100, "alice", {100, 2001}, "/home/alice"}, {}};
  core::node::PodTemplate& job = permit.job;
  job.job = 7;
  job.generation = 3;
  job.job_name = "sweep";
  job.job_uid = "00000000-0000-4000-8000-000000000007";
  job.ns = "default";
  job.indexed = true;
  job.completions = 10;
  job.parallelism = 4;
  job.labels = {{"a", "b"}};
  job.annotations = {{"c", ""}, {"d", std::string("e\0f", 3)}};
  job.init_containers = 1;
  for (const char* name : {"init", "main"}) {
    auto& container = job.containers.emplace_back();
    container.what.name = name;
    container.what.working_dir = "/tmp";
    container.what.command = {"sh", "-c"};
    container.what.args = {"echo $(K)", ""};
    container.what.env = {{"K", "v", ""}, {"NODE", "", "spec.nodeName"}};
    container.devices = {{"nvidia.com/gpu", 2}};
  }
  return permit;
}

TEST(Permit, RoundTrips) {
  const std::string bytes = permit_bytes(sample());
  const auto read = read_permit(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(permit_bytes(*read), bytes);
  EXPECT_EQ(read->owner, sample().owner);
  EXPECT_EQ(read->node, "n1");
  EXPECT_EQ(read->until_ms, 1'700'000'000'000);
  ASSERT_EQ(read->job.containers.size(), 2u);
  EXPECT_EQ(read->job.containers[1].what.env[1].field_path, "spec.nodeName");
  EXPECT_EQ(read->job.annotations.at("d"), std::string("e\0f", 3));
  EXPECT_EQ(read->job.completions, 10);
}

TEST(Permit, HasTheInputsOfIndexes) {
  Permit permit = sample();
  permit.job.inputs =
      std::make_shared<const core::InputTable>(*core::InputTable::of("a.csv\nb.csv\n"));
  auto read = read_permit(permit_bytes(permit));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_NE(read->job.inputs, nullptr);
  EXPECT_EQ(read->job.inputs->row(1), core::Input{"b.csv"});
  permit.job.inputs = nullptr;
  permit.job.inputs_file = "/home/alice/list";
  permit.session = PermitSession{1, 0, 0, "id", {"sh"}, true, false};
  read = read_permit(permit_bytes(permit));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->job.inputs, nullptr);
  EXPECT_EQ(read->job.inputs_file, "/home/alice/list");
  EXPECT_TRUE(read->session->input);
  EXPECT_TRUE(permit_bytes(sample()).find("muster permit 1") != std::string::npos);
}

TEST(Permit, HasTheVolumes) {
  Permit permit = sample();
  core::Volume data{.name = "data", .kind = core::VolumeKind::host_path, .kinds = 1};
  data.path = "/data";
  data.type = "Directory";
  core::Volume key{.name = "key", .kind = core::VolumeKind::secret, .kinds = 1};
  key.secret = "db";
  key.items = {{"password", "p", 0400}, {"user", "u", {}}};
  key.default_mode = 0440;
  permit.job.volumes = {data, key};
  permit.job.private_tmp = true;
  permit.job.containers[0].what.volume_mounts = {{"data", "/d", "sub", true},
                                                 {"key", "/k", "", false}};
  const std::string bytes = permit_bytes(permit);
  EXPECT_NE(bytes.find("muster permit 6"), std::string::npos);
  const auto read = read_permit(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->job.volumes, permit.job.volumes);
  EXPECT_TRUE(read->job.private_tmp);
  EXPECT_EQ(read->job.containers[0].what.volume_mounts,
            permit.job.containers[0].what.volume_mounts);
  EXPECT_EQ(permit_bytes(*read), bytes);
}

TEST(Permit, SharedMemoryNeedsForm8) {
  Permit permit = sample();
  core::Volume memory{.name = "m", .kinds = 1};
  memory.medium = "Memory";
  permit.job.volumes = {memory};
  permit.job.containers[0].what.volume_mounts = {{"m", "/a", "", false}};
  EXPECT_NE(permit_bytes(permit).find("muster permit 6"), std::string::npos);
  permit.job.containers[1].what.volume_mounts = {{"m", "/b", "", false}};
  const std::string bytes = permit_bytes(permit);
  EXPECT_NE(bytes.find("muster permit 8"), std::string::npos);
  const auto read = read_permit(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(permit_bytes(*read), bytes);
}

TEST(Permit, RoundTripsConfigMapData) {
  Permit permit = sample();
  core::Container& main = permit.job.containers[1].what;
  main.env[0].config = core::ConfigKeyRef{"a", "k", true};
  main.env_from = {{"P_", "a", false}, {"", "b", true}};
  permit.job.config_needs = {{"a", {}}};
  permit.job.configs["a"] = std::make_shared<const core::ConfigData>(
      core::ConfigData{{{"k", "v"}}, {{"bin", std::string("\0x", 2)}}});
  const std::string bytes = permit_bytes(permit);
  EXPECT_TRUE(bytes.find("muster permit 7") != std::string::npos);
  const auto read = read_permit(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->job.containers[1].what, main);
  EXPECT_EQ(*read->job.configs.at("a"), *permit.job.configs.at("a"));
  EXPECT_EQ(read->job.config_needs.size(), 2u) << "read from the containers";
  EXPECT_EQ(permit_bytes(*read), bytes);
  EXPECT_FALSE(read_permit(bytes.substr(0, bytes.size() - 1)).ok());
}

Permit sample_with_secret() {
  Permit permit = sample();
  permit.job.containers[0].what.env[0].secret = core::SecretRef{"db", "password", true};
  return permit;
}

TEST(Permit, HasTheNamesOfSecrets) {
  const std::string bytes = permit_bytes(sample_with_secret());
  const auto read = read_permit(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(permit_bytes(*read), bytes);
  const core::SecretRef expected{"db", "password", true};
  EXPECT_EQ(read->job.containers[0].what.env[0].secret, expected);
  EXPECT_FALSE(read->job.containers[0].what.env[1].secret);
  EXPECT_FALSE(read->job.containers[1].what.env[0].secret);
}

Permit sample_of_session() {
  Permit permit = sample_with_secret();
  permit.job.mpi = "auto,slots=4";
  permit.session = PermitSession{3, 1, 1, std::string(32, 'a'), {"sh", "-c", ""}};
  return permit;
}

TEST(Permit, HasTheCommandOfASession) {
  const std::string bytes = permit_bytes(sample_of_session());
  const auto read = read_permit(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(permit_bytes(*read), bytes);
  EXPECT_EQ(read->job.mpi, "auto,slots=4");
  EXPECT_TRUE(read->job.containers[0].what.env[0].secret);
  ASSERT_TRUE(read->session);
  EXPECT_EQ(read->session->index, 3u);
  EXPECT_EQ(read->session->attempt, 1u);
  EXPECT_EQ(read->session->container, 1);
  EXPECT_EQ(read->session->id, std::string(32, 'a'));
  EXPECT_EQ(read->session->command, (std::vector<std::string>{"sh", "-c", ""}));
  Permit pods = sample_of_session();
  pods.session.reset();
  EXPECT_FALSE(read_permit(permit_bytes(pods))->session);
}

TEST(Permit, RoundTripsInputAndTerminalOfSession) {
  Permit permit = sample_of_session();
  permit.session->input = true;
  const auto piped = read_permit(permit_bytes(permit));
  ASSERT_TRUE(piped.ok()) << piped.error().message;
  EXPECT_TRUE(piped->session->input);
  EXPECT_FALSE(piped->session->terminal);
  permit.session->terminal = true;
  EXPECT_TRUE(read_permit(permit_bytes(permit))->session->terminal);
  EXPECT_FALSE(read_permit(permit_bytes(sample_of_session()))->session->input);
}

// Older keepers read the forms that they know: form 2 since version 6, form 3 since 8, form 4 since
// 9.
TEST(Permit, UsesEarliestSufficientForm) {
  auto form = [](const Permit& permit) {
    const std::string bytes = permit_bytes(permit);
    return bytes.substr(bytes.find("muster permit"), sizeof "muster permit 1" - 1);
  };
  EXPECT_EQ(form(sample()), "muster permit 1");
  EXPECT_EQ(form(sample_with_secret()), "muster permit 2");
  Permit of_mpi_job = sample();
  of_mpi_job.job.mpi = "auto";
  EXPECT_EQ(form(of_mpi_job), "muster permit 3");
  Permit of_session = sample();
  of_session.session = sample_of_session().session;
  EXPECT_EQ(form(of_session), "muster permit 3");
  of_session.session->input = true;
  EXPECT_EQ(form(of_session), "muster permit 4");
}

TEST(Permit, RejectsTruncatedOrExtendedBytes) {
  Permit with_input = sample_of_session();
  with_input.session->input = with_input.session->terminal = true;
  for (const Permit& permit : {sample(), sample_with_secret(), sample_of_session(), with_input}) {
    const std::string bytes = permit_bytes(permit);
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(read_permit(std::string_view(bytes).substr(0, size)).ok()) << size;
    EXPECT_FALSE(read_permit(bytes + "x").ok());
  }
}

TEST(Permit, GoesOnlyWithTheTemplateItWasMadeFor) {
  Permit permit = sample_of_session();
  permit.session->input = true;
  const std::string job = core::node::template_bytes(permit.job);
  const std::string bytes = permit_bytes(permit, job);
  const auto read = read_permit(bytes, job);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(core::node::template_bytes(read->job), job);
  EXPECT_EQ(read->owner, permit.owner);
  EXPECT_TRUE(read->session && read->session->input);
  EXPECT_FALSE(read_permit(bytes).ok());
  EXPECT_FALSE(read_permit(bytes + job).ok());
  EXPECT_FALSE(read_permit(bytes + job.substr(0, 1), job.substr(1)).ok());
  EXPECT_FALSE(read_permit(bytes, job + '\0').ok());
  EXPECT_FALSE(read_permit(permit_bytes(permit), job).ok()) << "it has a template of its own";
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_permit(std::string_view(bytes).substr(0, size), job).ok()) << size;
}

TEST(Permit, SignatureIsValidOnlyForKeyAndBytes) {
  const auto key = PermitKey::of_private(kSeed),
             other = PermitKey::of_private(std::string(64, '8'));
  ASSERT_TRUE(key.ok() && other.ok());
  const std::string bytes = permit_bytes(sample()), signature = key->sign(bytes);
  EXPECT_EQ(signature.size(), 64u);
  EXPECT_TRUE(verify_permit(key->public_hex(), bytes, signature));
  EXPECT_FALSE(verify_permit(other->public_hex(), bytes, signature));
  EXPECT_FALSE(verify_permit(key->public_hex(), bytes, other->sign(bytes)));
  EXPECT_FALSE(verify_permit(key->public_hex(), bytes, ""));
  EXPECT_FALSE(verify_permit(key->public_hex(), bytes, signature + "x"));
  EXPECT_FALSE(verify_permit("", bytes, signature));
  EXPECT_FALSE(verify_permit(std::string(64, 'g'), bytes, signature));
  // Changing any byte makes another permit: for another user, node, command or date.
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string forged = bytes;
    forged[at] = static_cast<char>(forged[at] ^ 1);
    EXPECT_FALSE(verify_permit(key->public_hex(), forged, signature)) << at;
  }
}

TEST(Permit, AKeyIs64Digits) {
  for (const char* bad : {"", "77", "zz"}) EXPECT_FALSE(PermitKey::of_private(bad).ok()) << bad;
  EXPECT_FALSE(PermitKey::of_private(std::string(63, '7')).ok());
  EXPECT_FALSE(PermitKey::of_private(std::string(64, 'G')).ok());
}

// RFC 8032, 7.1, test 1: other tools can verify our signatures.
TEST(Permit, SignaturesFollowRfc8032) {
  const auto key =
      PermitKey::of_private("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->public_hex(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  EXPECT_EQ(static_cast<unsigned char>(key->sign("")[0]), 0xe5);
}

}  // namespace
}  // namespace muster
