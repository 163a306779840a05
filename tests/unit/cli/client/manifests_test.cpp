// Manifests, and which job a data-dir of `muster run` belongs to.
#include "cli/client/manifests.hpp"

#include "cli/client/run_identity.hpp"
#include "cli/settings/files.hpp"

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
  Json job = command_manifest({20, 8, "", 1, {"./My_Script.sh", "a b"}, {}, ""}, zero);
  EXPECT_EQ(text_at(job, {"metadata", "name"}), "my-script-sh-bbbbb");
  EXPECT_EQ(
      dumped(job["spec"]),
      R"({"backoffLimitPerIndex":1,"completionMode":"Indexed","completions":20,"parallelism":8,"template":{"spec":)"
      R"({"containers":[{"command":["./My_Script.sh","a b"],"name":"main"}],"restartPolicy":"Never"}}})");
  EXPECT_EQ(text_at(command_manifest({1, 1, "", 0, {"/"}, {}, ""}, zero), {"metadata", "name"}),
            "job-bbbbb");
  job = command_manifest({1, 1, "given", 0, {"true"}, {}, ""}, zero);
  EXPECT_EQ(text_at(job, {"metadata", "name"}), "given");
}

Json container_of(const Json& job) {
  return job["spec"]["template"]["spec"]["containers"][0];
}

TEST(P25AsTyped, NothingOfACommandIsExpanded) {
  const Json job = command_manifest({1, 1, "j", 0, {"$$", "$(HOME)", "a$b", "$"}, {}, ""},
                                    [](uint32_t) { return 0u; });
  EXPECT_EQ(dumped(container_of(job)["command"]), R"json(["$$$$","$$(HOME)","a$$b","$$"])json");
}

TEST(P27Budget, EachIndexHasItsOwn) {
  const auto zero = [](uint32_t) { return 0u; };
  EXPECT_EQ(command_manifest({9, 1, "j", 0, {"a"}, {}, ""}, zero)["spec"]["backoffLimitPerIndex"],
            0);
  EXPECT_EQ(command_manifest({9, 1, "j", 3, {"a"}, {}, ""}, zero)["spec"]["backoffLimitPerIndex"],
            3);
}

TEST(P28Surroundings, OwnOnesWinAndNothingIsExpanded) {
  const auto zero = [](uint32_t) { return 0u; };
  const Json job = command_manifest({1, 1, "j", 0, {"a"}, {{"A", "own"}}, ""}, zero);
  const Json whole = with_surroundings(job, {{"A", "shell"}, {"B", "$(A)$$"}}, "/work");
  EXPECT_EQ(dumped(container_of(whole)["env"]),
            R"([{"name":"A","value":"own"},{"name":"B","value":"$$(A)$$$$"}])");
  EXPECT_EQ(text_at(container_of(whole), {"workingDir"}), "/work");
  const Json placed = command_manifest({1, 1, "j", 0, {"a"}, {}, "/own"}, zero);
  EXPECT_EQ(text_at(container_of(with_surroundings(placed, {}, "/work")), {"workingDir"}), "/own");
  EXPECT_FALSE(container_of(with_surroundings(placed, {}, "/work")).contains("env"));
}

TEST(P28Surroundings, WhatGoesAlong) {
  const char* const environ[] = {"A=1",        "B=x=y",          "MUSTER_JOB_NAME=outer",
                                 "_=/bin/x",   "HOSTNAME=outer", "JOB_COMPLETION_INDEX=7",
                                 "LATIN=\xe4", "PWD=/old",       "BASH_FUNC_f%%=() {  :; }",
                                 "nothing",    nullptr};
  auto all = exported(environ, {}, "/new");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, (Variables{
                      {"A", "1"}, {"B", "x=y"}, {"BASH_FUNC_f%%", "() {  :; }"}, {"PWD", "/new"}}));
  EXPECT_TRUE(exported(environ, *parse_export("NONE"), "/new")->empty());
  EXPECT_EQ(*exported(environ, *parse_export("A,HOSTNAME"), "/new"),
            (Variables{{"A", "1"}, {"HOSTNAME", "outer"}}));
  EXPECT_EQ(exported(environ, *parse_export("A,C"), "").error().message, "--export: C is not set");
  EXPECT_FALSE(exported(environ, *parse_export("LATIN"), "").ok());
  EXPECT_FALSE(parse_export("A,,B").ok());
  EXPECT_FALSE(parse_export("A=1").ok());
  EXPECT_FALSE(parse_variable("A").ok());
  EXPECT_FALSE(parse_variable("=1").ok());
  EXPECT_EQ(parse_variable("A=b=c")->second, "b=c");
}

TEST(RunIdentity, ADirectoryHoldsOneJob) {
  TempDir dir;
  const Json job = read_json(R"({"metadata":{"name":"a"},"spec":{"completions":1}})");
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
  ASSERT_TRUE(claim(dir.path, {read_json(R"({"metadata":{"name":"x-11111"}})"), false}).ok());
  auto again = claim(dir.path, {read_json(R"({"metadata":{"name":"x-22222"}})"), false});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(text_at(again->manifest, {"metadata", "name"}), "x-11111");
  EXPECT_FALSE(claim(dir.path, {read_json(R"({"metadata":{"name":"x-22222"}})"), true}).ok());
}

}  // namespace
}  // namespace muster::cli
