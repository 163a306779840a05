// Manifests, and whose a data-dir is.
#include "cli/manifests.hpp"

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
