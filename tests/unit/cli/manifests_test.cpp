// Manifests, the coordinator's config file, where the coordinator is, whose a data-dir is.
#include "cli/manifests.hpp"

#include "cli/coordinator_config.hpp"
#include "cli/discovery.hpp"
#include "cli/files.hpp"
#include "cli/run_identity.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace muster::cli {
namespace {

struct TempDir {
  TempDir() : path(testing::TempDir() + "muster-cli-XXXXXX") {
    EXPECT_NE(mkdtemp(path.data()), nullptr);
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string path;
};

constexpr char kJob[] =
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {completions: 1}\n";

TEST(Manifests, SeveralDocuments) {
  auto documents = parse_manifests(std::string(kJob) + "---\n" + kJob + "---\n", "f.yaml");
  ASSERT_TRUE(documents.ok());
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ(documents->front().name, "a");
}

TEST(Manifests, RefusalsNameFileAndPlace) {
  const auto refused = [](const std::string& text) {
    auto documents = parse_manifests(text, "f.yaml");
    EXPECT_FALSE(documents.ok()) << text;
    return documents.ok() ? "" : documents.error().message;
  };
  EXPECT_EQ(refused("a: [1").rfind("f.yaml", 0), 0u);
  EXPECT_NE(refused("a: 1\nb: [1\n").find("line"), std::string::npos);
  EXPECT_NE(refused("").find("no manifest"), std::string::npos);
  EXPECT_NE(refused("apiVersion: v1\nkind: Pod\n").find("a Pod of v1"), std::string::npos);
  EXPECT_NE(refused(std::string(kJob) + "---\n- 1\n").find("document 2"), std::string::npos);
  auto missing = read_manifests("/nonexistent/f.yaml");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Errc::invalid);
  EXPECT_NE(missing.error().message.find("/nonexistent/f.yaml: No such file"), std::string::npos);
}

TEST(Manifests, OfACommand) {
  const auto zero = [](uint32_t) { return 0u; };
  Json job = command_manifest({20, 8, "", 1, {"./My_Script.sh", "a b"}}, zero);
  EXPECT_EQ(text_at(job, {"metadata", "name"}), "my-script-sh-bbbbb");
  EXPECT_EQ(
      dumped(job["spec"]),
      R"({"backoffLimitPerIndex":1,"completionMode":"Indexed","completions":20,"parallelism":8,"template":{"spec":)"
      R"({"containers":[{"command":["./My_Script.sh","a b"],"name":"main"}],"restartPolicy":"Never"}}})");
  EXPECT_EQ(text_at(command_manifest({1, 1, "", {}, {"/"}}, zero), {"metadata", "name"}),
            "job-bbbbb");
  job = command_manifest({1, 1, "given", {}, {"true"}}, zero);
  EXPECT_EQ(text_at(job, {"metadata", "name"}), "given");
  EXPECT_FALSE(job["spec"].contains("backoffLimitPerIndex"));
}

TEST(CoordinatorConfig, FileAndFlags) {
  auto file = parse_config("data-dir: /d\nnode-grace: 5s\ninsecure: true\n", "c.yaml");
  ASSERT_TRUE(file.ok());
  auto options = coordinator_options({{"node-grace", "7s"}}, *file);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->options.data_dir, "/d");
  EXPECT_EQ(options->options.node_grace_ms, 7'000);
  EXPECT_TRUE(options->options.insecure);
}

TEST(CoordinatorConfig, Refusals) {
  const auto wrong = [](const char* text) {
    auto file = parse_config(text, "c.yaml");
    EXPECT_FALSE(file.ok()) << text;
    return file.ok() ? "" : file.error().message;
  };
  EXPECT_EQ(wrong("node-grce: 5s"), "c.yaml: unknown key node-grce; did you mean node-grace?");
  EXPECT_NE(wrong("- a").find("map"), std::string::npos);
  EXPECT_NE(wrong("api: [1]").find("single value"), std::string::npos);
  EXPECT_NE(coordinator_options({}, {{"data-dir", "d"}, {"node-grace", "x"}})
                .error()
                .message.find("--config: node-grace"),
            std::string::npos);
  EXPECT_FALSE(
      coordinator_options({{"data-dir", "d"}, {"pod-failure-backoff-max", "1s"}}, {}).ok());
}

TEST(Discovery, InItsOrder) {
  TempDir home;
  std::filesystem::create_directories(home.path + "/.config/muster");
  std::map<std::string, std::string> values = {{"HOME", home.path}, {"MUSTER_API", "a:1"}};
  const auto env = [&values](const char* name) {
    return values.contains(name) ? values[name].c_str() : nullptr;
  };
  EXPECT_EQ(discover("http://b:2/", env)->address, "b:2");
  EXPECT_EQ(discover("", env)->address, "a:1");
  values.erase("MUSTER_API");
  EXPECT_EQ(discover("", env)->address, kDefaultApi);
  std::ofstream(home.path + "/.config/muster/config.yaml") << "api: c:3\n";
  EXPECT_EQ(discover("", env)->address, "c:3");
  EXPECT_EQ(discover("7200", env)->address, "127.0.0.1:7200");
  for (const char* wrong : {"host", "host:", "host:0", "host:99999", "https://h:1", "a:1/path"}) {
    EXPECT_FALSE(discover(wrong, env).ok()) << wrong;
  }
}

TEST(RunIdentity, ADirectoryHoldsOneJob) {
  TempDir dir;
  const Json job = parse_json(R"({"metadata":{"name":"a"},"spec":{"completions":1}})");
  ASSERT_TRUE(claim(dir.path, {job, true}).ok());
  EXPECT_TRUE(claim(dir.path, {job, true}).ok());
  Json other = job;
  other["spec"]["completions"] = 2;
  auto refused = claim(dir.path, {other, true});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_NE(refused.error().message.find("spec.completions"), std::string::npos);
}

TEST(RunIdentity, AMadeUpNameIsKept) {
  TempDir dir;
  ASSERT_TRUE(claim(dir.path, {parse_json(R"({"metadata":{"name":"x-11111"}})"), false}).ok());
  auto again = claim(dir.path, {parse_json(R"({"metadata":{"name":"x-22222"}})"), false});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(text_at(again->manifest, {"metadata", "name"}), "x-11111");
  EXPECT_FALSE(claim(dir.path, {parse_json(R"({"metadata":{"name":"x-22222"}})"), true}).ok());
}

}  // namespace
}  // namespace muster::cli
