// Manifests, and which job a data-dir of `muster run` belongs to.
#include "client/documents/manifests.hpp"

#include "client/documents/placed.hpp"
#include "client/inputs/run_identity.hpp"
#include "client/settings/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

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

std::vector<std::string> names_of(const Manifests& manifests) {
  std::vector<std::string> names;
  for (const Document& one : manifests.documents) names.push_back(one.name);
  return names;
}

// What fail() prints, without "muster: ".
std::vector<std::string> lines_of(const std::optional<Error>& error) {
  std::vector<std::string> lines;
  if (!error) return lines;
  EXPECT_EQ(error->message, "");
  for (const Violation& one : error->violations)
    lines.push_back(one.path + (one.path.empty() ? "" : ": ") + one.detail);
  return lines;
}

using Texts = std::vector<std::string>;

TEST(Manifests, ReadsSeveralDocuments) {
  const auto read = parse_manifests(std::string(kJob) + "---\n" + kJob + "---\n", "f.yaml");
  EXPECT_FALSE(read.error);
  EXPECT_EQ(names_of(read), (Texts{"a", "a"}));
}

TEST(Manifests, EachErrorNamesItsPlaceAndTheOthersAreRead) {
  const std::string text = std::string("a: [1\n---\n") + kJob +
                           "---\napiVersion: v1\nkind: Pod\n---\n- 1\n---\n"
                           "kind: CronJob\napiVersion: batch/v1beta1\n---\nkind: Jub\n---\n"
                           "apiVersion: batch/v1\n---\nkind: Job\napiVersion: batch/v2\n";
  const auto read = parse_manifests(text, "f.yaml");
  EXPECT_EQ(names_of(read), Texts{"a"});
  EXPECT_EQ(
      lines_of(read.error),
      (Texts{
          "f.yaml:2:1: end of sequence flow not found",
          "f.yaml:9:1: kind: is Pod of v1; make it a Job: the pod's spec is spec.template.spec "
          "of the job, and restartPolicy is Never or OnFailure",
          "f.yaml:11:1: is not an object with apiVersion, kind, metadata and spec",
          "f.yaml:13:1: kind: is CronJob of batch/v1beta1, must be of batch/v1",
          "f.yaml:16:1: kind: is Jub, must be a Job or CronJob of batch/v1, a ConfigMap or "
          "Namespace of v1, a Queue of muster.dev/v1, or a PriorityClass of scheduling.k8s.io/v1; "
          "did you mean Job?",
          "f.yaml:18:1: kind: is missing, must be a Job or CronJob of batch/v1, a ConfigMap or "
          "Namespace of v1, a Queue of muster.dev/v1, or a PriorityClass of scheduling.k8s.io/v1",
          "f.yaml:20:1: kind: is Job of batch/v2, must be of batch/v1"}));
  EXPECT_EQ(lines_of(parse_manifests("", "f.yaml").error), Texts{"f.yaml: no manifest found"});
}

TEST(Manifests, ReadsFilesAndDirectories) {
  TempDir dir;
  const auto write = [&dir](const std::string& name, const std::string& job) {
    std::ofstream(dir.path + "/" + name)
        << R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": ")" << job << "\"}}";
  };
  EXPECT_EQ(lines_of(read_manifests({dir.path}).error),
            Texts{dir.path + " has no .yaml, .yml or .json files"});
  write("c.json", "three");
  write("a.yaml", "one");
  write("b.yml", "two");
  write("readme.md", "none");
  const auto read =
      read_manifests({dir.path, "/nonexistent/f.yaml", dir.path + "/b.yml", "https://x/y"});
  EXPECT_EQ(names_of(read), (Texts{"one", "two", "three", "two"}));
  EXPECT_EQ(
      lines_of(read.error),
      (Texts{"cannot read /nonexistent/f.yaml: No such file or directory",
             "https://x/y: is not a file; download it first: curl -sL URL | muster apply -f -"}));
  EXPECT_EQ(read.error->code, Errc::invalid);
}

TEST(Manifests, ReadsListsAndDropsServerFields) {
  const auto read = parse_manifests(
      "kind: List\napiVersion: v1\nitems:\n"
      "- kind: Job\n  apiVersion: batch/v1\n  metadata: {name: a, uid: u, resourceVersion: '7'}\n"
      "  spec: {selector: {matchLabels: {controller-uid: u}}, completions: 2}\n"
      "  status: {succeeded: 1}\n"
      "- kind: Pod\n  apiVersion: v1\n"
      "- kind: ConfigMap\n  apiVersion: v1\n  metadata: {name: c}\n",
      "f.yaml");
  EXPECT_EQ(names_of(read), (Texts{"a", "c"}));
  EXPECT_EQ(read.documents[0].json,
            R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},)"
            R"("spec":{"completions":2}})");
  ASSERT_EQ(lines_of(read.error).size(), 1u);
  EXPECT_EQ(lines_of(read.error)[0].rfind("f.yaml:9:3: kind: is Pod of v1; ", 0), 0u);
  EXPECT_EQ(names_of(parse_manifests(R"({"kind":"JobList","items":[{"metadata":{"name":"j"}}]})",
                                     "f.json")),
            Texts{"j"});
  EXPECT_EQ(lines_of(parse_manifests("kind: List\n", "f.yaml").error),
            Texts{"f.yaml:1:1: kind: is List, but there are no items"});
}

Document only(const std::string& text) {
  Manifests read = parse_manifests(text, "f.yaml");
  EXPECT_EQ(read.documents.size(), 1u);
  return read.documents.front();
}

TEST(Manifests, ViolationsAreShownWithLinesInFileOrder) {
  const Document document = only("# mine\n" + std::string(kJob));
  const auto violation = [](const char* path, const char* detail) {
    return Violation{path, Violation::Kind::invalid, "", detail};
  };
  Error refused = invalid("Job \"a\" is invalid:");
  refused.violations = {
      violation("spec.completions", "Invalid value: -1"),
      violation("spec.template.spec.restartPolicy",
                R"(Unsupported value: "never": supported values: "OnFailure", "Never")"),
      violation("metadata.name", R"(Invalid value: "{{ x }}": must be a name)"),
      violation("spec.completions", "Invalid value: -1")};
  EXPECT_EQ(
      lines_of(placed(refused, document)),
      (Texts{
          "f.yaml:4:12: metadata.name: Invalid value: \"{{ x }}\": must be a name; if this is a "
          "Helm template, render it first: helm template CHART",
          "f.yaml:5:1: spec.template.spec.restartPolicy: Unsupported value: \"never\": supported "
          "values: \"OnFailure\", \"Never\"; did you mean Never?",
          "f.yaml:5:8: spec.completions: Invalid value: -1"}));
  EXPECT_EQ(lines_of(placed(invalid("metadata.namespace: is x"), document)),
            Texts{"f.yaml:2:1: metadata.namespace: is x"});
  EXPECT_EQ(lines_of(placed(invalid("spec.completions: is x"), document)),
            Texts{"f.yaml:5:8: spec.completions: is x"});
  EXPECT_EQ(lines_of(placed({Errc::exists, "jobs.batch \"a\" already exists", {}}, document)),
            Texts{"f.yaml:4:12: jobs.batch \"a\" already exists"});
  EXPECT_EQ(placed({Errc::unavailable, "cannot reach", {}}, document).message, "cannot reach");
  EXPECT_EQ(placed_warning("metadata.name: is long", document),
            "f.yaml:4:12: metadata.name: is long");
  EXPECT_EQ(placed_warning("odd", document), "f.yaml:2:1: odd");
  const Document item =
      only("kind: JobList\nitems:\n- metadata:\n    name: a\n  spec: {completions: 2}\n");
  EXPECT_EQ(lines_of(placed(invalid("spec.completions: is x"), item)),
            Texts{"f.yaml:5:10: spec.completions: is x"});
}

TEST(Manifests, CommandMakesManifest) {
  const auto zero = [](uint32_t) { return 0u; };
  Json job = command_manifest({20, 8, "", 1, {"./My_Script.sh", "a b"}, {}, ""}, zero);
  EXPECT_EQ(text_at(job, {"metadata", "name"}), "my-script-sh-bbbbb");
  EXPECT_EQ(
      dumped(job["spec"]),
      R"({"backoffLimitPerIndex":1,"completionMode":"Indexed","completions":20,"parallelism":8,)"
      R"("podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[)"
      R"({"status":"True","type":"DisruptionTarget"}]}]},"template":{"spec":)"
      R"({"containers":[{"command":["./My_Script.sh","a b"],"name":"main"}],"restartPolicy":"Never"}}})");
  const auto disruptions = [](const Json& manifest) {
    return text_at(manifest, {"metadata", "annotations", "muster.dev/disruptions-max"});
  };
  EXPECT_EQ(disruptions(job), "5");
  EXPECT_EQ(disruptions(command_manifest({1, 1, "", 0, {"/"}, {}, "", {}, 0}, zero)), "0");
  EXPECT_EQ(text_at(command_manifest({1, 1, "", 0, {"/"}, {}, ""}, zero), {"metadata", "name"}),
            "job-bbbbb");
  job = command_manifest({1, 1, "given", 0, {"true"}, {}, ""}, zero);
  EXPECT_EQ(text_at(job, {"metadata", "name"}), "given");
}

TEST(Manifests, AGeneratedNameIsOfTheScriptThatAnInterpreterRuns) {
  const auto name = [](std::vector<std::string> command) {
    const Json job =
        command_manifest({1, 1, "", 0, std::move(command), {}, ""}, [](uint32_t) { return 0u; });
    const std::string text = text_at(job, {"metadata", "name"});
    return text.substr(0, text.rfind('-'));
  };
  EXPECT_EQ(name({"python3", "-u", "src/train.py", "--lr", "0.1"}), "train-py");
  EXPECT_EQ(name({"/usr/bin/Rscript", "fit.R"}), "fit-r");
  EXPECT_EQ(name({"python3", "-m", "http.server"}), "http-server");
  EXPECT_EQ(name({"time", "bash", "./o.sh"}), "o-sh");
  EXPECT_EQ(name({"nohup", "solve", "a.txt"}), "solve");
  EXPECT_EQ(name({"sh", "-c", "echo a.b; sleep 1"}), "sh");
  EXPECT_EQ(name({"bash"}), "bash");
  EXPECT_EQ(name({"time", "-p", "ls"}), "time");
  EXPECT_EQ(name({"ls", "x.py"}), "ls");
}

TEST(Manifests, DecodingErrorsAreShownWithLines) {
  const Document document =
      only(std::string(kJob) + "hue: 1\nstatus: {a: {b: c}, completions: 'x; y: z'}\n");
  const auto lines = [&document](const char* message) {
    return lines_of(placed(invalid(message), document));
  };
  EXPECT_EQ(lines("strict decoding error: unknown field \"hue\", did you mean \"hues\"? unknown "
                  "field \"spec.completions\", duplicate field \"metadata.name\""),
            (Texts{"f.yaml:3:12: metadata.name: is set twice",
                   "f.yaml:4:8: spec.completions: unknown field",
                   "f.yaml:5:1: hue: unknown field; did you mean hues?"}));
  EXPECT_EQ(lines("status.completions: found the string \"x; y: z\", expected an integer; "
                  "status.a.b: found the string \"c\", expected true; unknown field \"hue\""),
            (Texts{"f.yaml:5:1: hue: unknown field",
                   "f.yaml:6:14: status.a.b: found the string \"c\", expected true",
                   "f.yaml:6:21: status.completions: found the string \"x; y: z\", expected an "
                   "integer"}));
  EXPECT_EQ(lines("strict decoding error: something new"),
            Texts{"f.yaml:1:1: strict decoding error: something new"});
}

Json container_of(const Json& job) {
  return job["spec"]["template"]["spec"]["containers"][0];
}

TEST(P25AsTyped, DollarSignsOfCommandAreEscaped) {
  const Json job = command_manifest({1, 1, "j", 0, {"$$", "$(HOME)", "a$b", "$"}, {}, ""},
                                    [](uint32_t) { return 0u; });
  EXPECT_EQ(dumped(container_of(job)["command"]), R"json(["$$$$","$$(HOME)","a$$b","$$"])json");
}

TEST(Manifests, NamesAreRefusedWithOneThatIsValid) {
  const auto refused = [](const std::string& name, int64_t completions = 1) {
    const Status checked = check_job_name(name, completions);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refused("My Job"),
            "--name: `My Job`: a job's name has at most 61 lower-case letters, digits and dashes, "
            "and no dash at either end; use my-job");
  for (const auto& [name, better] : {std::pair("UPPER", "use upper"),
                                     {"a_b", "use a-b"},
                                     {"-x", "use x"},
                                     {"a/b", "use b"},
                                     {"a.b", "use a-b"},
                                     {"\xc3\xa9", "such as sweep-2"}})
    EXPECT_TRUE(refused(name).ends_with(better)) << refused(name);
  const std::string longest(61, 'x');
  EXPECT_EQ(refused(longest, 10), "");
  EXPECT_NE(refused(longest, 11).find("at most 60 lower-case letters"), std::string::npos);
}

TEST(P27Budget, RetriesSetBackoffLimitPerIndex) {
  const auto zero = [](uint32_t) { return 0u; };
  EXPECT_EQ(command_manifest({9, 1, "j", 0, {"a"}, {}, ""}, zero)["spec"]["backoffLimitPerIndex"],
            0);
  EXPECT_EQ(command_manifest({9, 1, "j", 3, {"a"}, {}, ""}, zero)["spec"]["backoffLimitPerIndex"],
            3);
}

TEST(P28Surroundings, OwnVariablesWinAndNothingIsExpanded) {
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

TEST(P28Surroundings, ExportsVariablesOfShellButNotOfPodOrHost) {
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
  const char* const gpus[] = {"CUDA_VISIBLE_DEVICES=0",
                              "NVIDIA_VISIBLE_DEVICES=0",
                              "ROCR_VISIBLE_DEVICES=0",
                              "HIP_VISIBLE_DEVICES=0",
                              "GPU_DEVICE_ORDINAL=0",
                              "CUDA_CACHE_PATH=/c",
                              nullptr};
  EXPECT_EQ(*exported(gpus, {}, ""), (Variables{{"CUDA_CACHE_PATH", "/c"}}));
  EXPECT_EQ(exported(gpus, {.elsewhere = false}, "")->size(), 6u);
  EXPECT_EQ(exported(gpus, *parse_export("CUDA_VISIBLE_DEVICES"), "")->size(), 1u);
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

TEST(RunIdentity, GeneratedNameIsKept) {
  TempDir dir;
  ASSERT_TRUE(claim(dir.path, {read_json(R"({"metadata":{"name":"x-11111"}})"), false}).ok());
  auto again = claim(dir.path, {read_json(R"({"metadata":{"name":"x-22222"}})"), false});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(text_at(again->manifest, {"metadata", "name"}), "x-11111");
  EXPECT_FALSE(claim(dir.path, {read_json(R"({"metadata":{"name":"x-22222"}})"), true}).ok());
}

}  // namespace
}  // namespace muster::cli
