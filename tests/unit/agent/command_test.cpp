// The command of a pod: environment, expansion, directory, note.
#include "core/node/command.hpp"

#include "agent/files/note.hpp"
#include "core/pod_name.hpp"
#include "core/spec/values/expansion.hpp"
#include "core/spec/values/inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace muster::agent {
namespace {

using core::expand;
using core::node::Command;
using core::node::command_of;
using core::node::CommandPattern;
using core::node::devices_of;
using core::node::kStringMax;
using core::node::kStringsMax;
using core::node::NodeFacts;
using core::node::plan_of;
using core::node::PodTemplate;
using core::node::SecretFile;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const NodeFacts kNode{"n1", "/start", {"PATH=/bin", "HOME=/root"}, "/root"};

PodTemplate job(core::Container container) {
  return {.job = 7,
          .generation = 1,
          .job_name = "sum",
          .job_uid = "3f0c3c0e-6a3e-4c43-9d0c-0d2c5f5e7a11",
          .ns = "default",
          .indexed = true,
          .completions = 5,
          .parallelism = 2,
          .grace_ms = 30'000,
          .containers = {core::node::TemplateContainer{.what = std::move(container)}},
          .labels = {{"team", "a"}},
          .annotations = {{"note", "x y"}}};
}

Command run(const core::Container& container, bool indexed = true) {
  PodTemplate t = job(container);
  t.indexed = indexed;
  auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
  EXPECT_TRUE(command.ok());
  return *command;
}

TEST(Expand, AsKubernetesDoes) {
  std::map<std::string, std::string> vars{{"A", "1"}, {"B", "$(A)"}, {"E", ""}};
  auto find = [&vars](const std::string& name) -> std::optional<std::string_view> {
    auto at = vars.find(name);
    if (at == vars.end()) return std::nullopt;
    return at->second;
  };
  const std::pair<const char*, const char*> rows[] = {
      {"$(A)", "1"},
      {"x$(A)y$(A)", "x1y1"},
      {"$(B)", "$(A)"},  // values are not expanded again
      {"$(E)", ""},
      {"$(date +%s)", "$(date +%s)"},
      {"$((1 + 2))", "$((1 + 2))"},
      {"$$(A)", "$(A)"},
      {"$$$(A)", "$1"},
      {"$$", "$"},
      {"$A ${A}", "$A ${A}"},
      {"$(A", "$(A"},
      {"$()", "$()"},
      {"end$", "end$"},
      {"", ""},
  };
  for (const auto& [in, out] : rows) EXPECT_EQ(expand(in, find, kStringMax), out) << in;
}

TEST(PodDir, EnvironmentHasInheritedJobAndContainerVariables) {
  Command c =
      run({.name = "main", .command = {"true"}, .env = {{"X", "1", ""}, {"HOME", "/h", ""}}});
  std::string uid = "3f0c3c0e-6a3e-4c43-9d0c-0d2c5f5e7a11";
  EXPECT_THAT(c.env, ElementsAre("PATH=/bin", "HOME=/h", "HOSTNAME=sum-3", "MUSTER_JOB_NAME=sum",
                                 "MUSTER_JOB_UID=" + uid, "MUSTER_NAMESPACE=default",
                                 "MUSTER_POD_NAME=" + core::pod_name("sum", uid, true, {3, 1}),
                                 "MUSTER_POD_UID=" + core::pod_uid(uid, {3, 1}),
                                 "MUSTER_NODE_NAME=n1", "MUSTER_ATTEMPT=1", "MUSTER_COMPLETIONS=5",
                                 "MUSTER_PARALLELISM=2", "X=1", "JOB_COMPLETION_INDEX=3"));
}

TEST(PodDir, AttemptOfNonIndexedPodIsItsNumber) {
  EXPECT_THAT(run({.command = {"true"}}).env, Contains("MUSTER_ATTEMPT=1"));
  PodTemplate t = job({.command = {"true"}});
  t.indexed = false;
  for (uint32_t number : {0u, 5u}) {
    auto command = command_of(t, t.containers[0].what, {7, number, 0}, kNode);
    ASSERT_TRUE(command.ok());
    EXPECT_THAT(command->env, Contains("MUSTER_ATTEMPT=" + std::to_string(number)));
  }
}

TEST(PodDir, CompletionIndexVariableOnlyForIndexedJobsUnlessContainerSetsIt) {
  EXPECT_THAT(run({.command = {"true"}}, false).env,
              Not(Contains(StartsWith("JOB_COMPLETION_INDEX="))));
  EXPECT_THAT(run({.command = {"true"}, .env = {{"JOB_COMPLETION_INDEX", "9", ""}}}).env,
              Contains("JOB_COMPLETION_INDEX=9"));
}

TEST(PodDir, ExpandsCommandArgsAndEarlierVariables) {
  Command c =
      run({.command = {"echo", "$(JOB_COMPLETION_INDEX)"},
           .args = {"$(A)$(B)", "$(HOME)", "$(MUSTER_JOB_NAME)"},
           .env = {{"B", "<$(A)>", ""}, {"A", "a", ""}, {"C", "$(A)-$(MUSTER_ATTEMPT)", ""}}});
  EXPECT_THAT(c.argv, ElementsAre("echo", "3", "a<$(A)>", "$(HOME)", "sum"));
  EXPECT_THAT(c.env, Contains("C=a-1"));
}

core::InputTablePtr inputs(const char* text) {
  return std::make_shared<const core::InputTable>(*core::InputTable::of(text));
}

TEST(PodDir, TheInputOfTheIndexIsAVariableAndItsPartsAreArguments) {
  PodTemplate t =
      job({.command = {"gzip", "$(MUSTER_INPUT_2/.)-$(MUSTER_INPUT#)", "$(MUSTER_INPUT_3)"},
           .env = {{"OUT", "$(MUSTER_INPUT_1).gz", ""}}});
  t.inputs = inputs("0\n1\n2\n$(X)\td/e f.txt\n");
  const auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_THAT(command->argv, ElementsAre("gzip", "e f-4", "$(MUSTER_INPUT_3)"));
  for (const char* variable : {"MUSTER_INPUT=$(X)\td/e f.txt", "MUSTER_INPUT_1=$(X)",
                               "MUSTER_INPUT_2=d/e f.txt", "OUT=$(X).gz"})
    EXPECT_THAT(command->env, Contains(variable));
  // Pods with inputs get no pattern.
  EXPECT_FALSE(CommandPattern::of(t, t.containers[0].what, kNode));
}

TEST(PodDir, InputOfOneColumnSetsOnlyMusterInput) {
  PodTemplate t = job({.command = {"true"}});
  t.inputs_file = "/list";
  const auto table = inputs("0\n1\n2\nx\n");
  const auto command =
      command_of(t, t.containers[0].what, {7, 3, 1}, kNode, {}, nullptr, table.get());
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_THAT(command->env, Contains("MUSTER_INPUT=x"));
  EXPECT_THAT(command->env, Not(Contains(StartsWith("MUSTER_INPUT_"))));
}

TEST(PodDir, AnIndexWithoutInputDoesNotRun) {
  PodTemplate t = job({.command = {"true"}});
  t.inputs_file = "/list";
  const auto of = [&t](const core::InputTable* table) {
    const auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode, {}, nullptr, table);
    return command.ok() ? "" : command.error().message;
  };
  EXPECT_EQ(of(nullptr),
            "inputs /list: this node runs pods as their owners and cannot read them; use "
            "muster.dev/inputs");
  EXPECT_EQ(of(inputs("0\n1\n").get()), "inputs /list: no line for index 3; there are 2");
}

// Variables each twice as long as the one before; the first has `first` bytes.
std::vector<core::EnvVar> doubling(size_t count, size_t first) {
  std::vector<core::EnvVar> env{{"V0", std::string(first, 'x'), ""}};
  for (size_t i = 1; i < count; ++i) {
    std::string before = "$(V" + std::to_string(i - 1) + ")";
    env.push_back({"V" + std::to_string(i), before + before, ""});
  }
  return env;
}

std::string refusal(const core::Container& container) {
  PodTemplate t = job(container);
  auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
  return command.ok() ? "" : command.error().message;
}

TEST(P05Expansion, IsRefusedAboveLengthOfOneString) {
  // Without a bound, the last value would have 2^40 bytes.
  EXPECT_THAT(refusal({.command = {"true"}, .env = doubling(41, 1)}),
              testing::StartsWith("env V17: longer than 128 KiB"));
  core::Container container{.command = {"true", "$(V16)$(V16)"}, .env = doubling(17, 1)};
  EXPECT_THAT(refusal(container), testing::StartsWith("word 2 of the command: longer than"));
  container.command[1] = "$(V16)";
  EXPECT_EQ(refusal(container), "");
  // The longest value that fits together with "A=" and the terminating NUL.
  std::string most(kStringMax - 3, 'x');
  EXPECT_EQ(refusal({.command = {"true"}, .env = {{"A", most, ""}}}), "");
  EXPECT_THAT(refusal({.command = {"true"}, .env = {{"A", most + "x", ""}}}),
              testing::StartsWith("env A: longer than"));
}

// Only with inputs is it the index's own, and then also if no word has it.
TEST(P05Expansion, InputThatIsTooLongIsTheIndexsOwn) {
  const std::string longest(kStringMax - std::string_view("MUSTER_INPUT=").size() - 1, 'x');
  for (const auto& [input, word, code] :
       {std::tuple(longest, "true", 0), std::tuple(longest + "x", "true", core::kExitOfIndex),
        std::tuple(longest, "$(MUSTER_INPUT)$(MUSTER_INPUT)", core::kExitOfIndex)}) {
    PodTemplate t = job({.command = {"echo", word}});
    t.inputs = inputs(("0\n1\n2\n" + input + "\n").c_str());
    const auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
    EXPECT_EQ(command.ok() ? 0 : exit_code_of(t, command.error()), code);
  }
  PodTemplate t = job({.command = {"echo", std::string(kStringMax, 'x')}});
  EXPECT_EQ(exit_code_of(t, command_of(t, t.containers[0].what, {7, 3, 1}, kNode).error()), 126);
  t = job({.command = {"echo"}});
  t.inputs = inputs("0\n");
  EXPECT_EQ(exit_code_of(t, command_of(t, t.containers[0].what, {7, 3, 1}, kNode).error()), 126);
}

std::string words_of(const Command& command) {
  std::string words;
  Writer out(words);
  core::node::write_words(out, command.argv, command.env);
  return words;
}

TEST(CommandPattern, GivesSameCommandAsCommandOf) {
  PodTemplate one = job({});
  const NodeFacts node{.node_name = "n", .start_dir = "/d", .inherited = {"PATH=/bin", "HOME=/h"}};
  const core::Container plain{
      .command = {"run", "$(MUSTER_POD_NAME):$(JOB_COMPLETION_INDEX)", "$(MUSTER_ATTEMPT)",
                  "$$(A)"},
      .env = {{"A", "$(MUSTER_POD_UID)", ""},
              {"B", "$(A) $(C) $(PATH)", ""},
              {"I", "", "metadata.labels['batch.kubernetes.io/job-completion-index']"},
              {"T", "", "metadata.labels['team']"},
              {"HOSTNAME", "x-$(MUSTER_POD_NAME)", ""}}};
  for (const core::node::DeviceMap& devices :
       {core::node::DeviceMap(), core::node::DeviceMap{{"nvidia.com/gpu", {}}}})
    for (bool indexed : {true, false}) {
      one.indexed = indexed;
      auto pattern = CommandPattern::of(one, plain, node, devices);
      ASSERT_TRUE(pattern);
      for (PodId pod : {PodId{7, 0, 0}, PodId{7, 12345, 6}}) {
        auto expected = command_of(one, plain, pod, node, devices);
        ASSERT_TRUE(expected);
        const Command command = pattern->command(one, pod);
        EXPECT_EQ(command.words, words_of(*expected));
        EXPECT_EQ(command.cwd, expected->cwd);
      }
    }
  auto possible = [&](const core::Container& container) {
    return CommandPattern::of(one, container, node).has_value();
  };
  EXPECT_FALSE(possible({})) << "no command";
  EXPECT_FALSE(possible({.command = {"a\1b"}}));
  EXPECT_FALSE(possible({.command = {"a\1"}}));
  EXPECT_FALSE(possible({.command = {"a\1n"}})) << "it looks like a hole";
  EXPECT_TRUE(possible({.command = {std::string(kStringMax - 1, 'x')}}));
  EXPECT_FALSE(possible({.command = {std::string(kStringMax - 17, 'x') + "$(MUSTER_ATTEMPT)"}}))
      << "whether it fits depends on the attempt";
}

TEST(P05Expansion, IsRefusedAboveLengthOfAllStrings) {
  auto find = [](const std::string&) -> std::optional<std::string_view> { return std::nullopt; };
  EXPECT_EQ(expand("12345", find, 5), "12345");
  EXPECT_EQ(expand("12345", find, 4), std::nullopt);
  core::Container container{.command = {"true"}, .env = doubling(17, 1)};  // 128 KiB in all
  for (int i = 0; i < 28; ++i)
    container.env.push_back({"W" + std::to_string(i), "$(V16)", ""});  // 64 KiB each
  EXPECT_EQ(refusal(container), "");
  container.env.push_back({"LAST", "$(V16)", ""});
  container.env.push_back({"LAST", "$(V16)", ""});  // replaces the previous one
  EXPECT_EQ(refusal(container), "");
  container.env.push_back({"MORE", "$(V16)", ""});
  EXPECT_THAT(refusal(container), testing::StartsWith("env MORE: with it, the environment"));
  container.env.pop_back();
  container.args = {"$(V16)"};
  EXPECT_THAT(refusal(container), testing::StartsWith("word 2 of the command: with it"));
}

TEST(PodDir, FieldRefsSetVariables) {
  Command c =
      run({.command = {"true"},
           .env = {{"NODE", "", "spec.nodeName"},
                   {"NS", "", "metadata.namespace"},
                   {"TEAM", "", "metadata.labels['team']"},
                   {"NONE", "", "metadata.labels['none']"},
                   {"NOTE", "", "metadata.annotations['note']"},
                   {"I", "", "metadata.annotations['batch.kubernetes.io/job-completion-index']"},
                   {"T2", "$(TEAM)$(TEAM)", ""}}});
  for (const char* want :
       {"NODE=n1", "NS=default", "TEAM=a", "NONE=", "NOTE=x y", "I=3", "T2=aa"}) {
    EXPECT_THAT(c.env, Contains(want));
  }
}

TEST(Command, ConfigMapsSetVariables) {
  core::Container container{.command = {"echo", "$(P_x) $(k)"}};
  container.env_from = {{"P_", "a", false}, {"", "b", false}, {"", "gone", true}};
  container.env = {{"k", "", "", {}, core::ConfigKeyRef{"a", "x", false}},
                   {"seen", "<$(k)>", ""},
                   {"no-key", "", "", {}, core::ConfigKeyRef{"a", "z", true}},
                   {"no-map", "", "", {}, core::ConfigKeyRef{"gone", "z", true}}};
  PodTemplate t = job(container);
  t.configs["a"] = std::make_shared<const core::ConfigData>(
      core::ConfigData{{{"x", "1"}, {"y", "$(x)"}}, {{"bin", "b"}}});
  t.configs["b"] = std::make_shared<const core::ConfigData>(
      core::ConfigData{{{"P_x", "2"}, {"k", "hidden"}}, {}});
  auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->argv[1], "2 1") << "later sources win, and env wins over them";
  for (const char* one : {"P_x=2", "P_y=$(x)", "k=1", "seen=<1>"})
    EXPECT_THAT(command->env, Contains(one));
  for (const char* name : {"P_bin=", "no-key=", "no-map="})
    EXPECT_THAT(command->env, Not(Contains(StartsWith(name))));
  const auto pattern = CommandPattern::of(t, t.containers[0].what, kNode);
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->command(t, {7, 3, 1}).words, words_of(*command));

  t.configs.erase("b");
  command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
  ASSERT_FALSE(command.ok());
  EXPECT_THAT(command.error().message, HasSubstr("configmap \"b\" not found"));
}

// Their values are not in the command. A later variable of the same name replaces a secret, and a
// secret replaces earlier ones.
TEST(PodDir, SecretsAreFilesToBeReadByTheProcess) {
  const core::SecretRef key{"db", "password", false}, other{"db", "user", true};
  core::Container container{.command = {"true"},
                            .env = {{"A", "1", ""},
                                    {"PASSWORD", "", "", key},
                                    {"A", "", "", other},
                                    {"GONE", "", "", key},
                                    {"GONE", "2", ""},
                                    {"HOME", "", "", key}}};
  const Command c = run(container);
  const std::string dir = "/root/.config/muster/secrets/db/";
  EXPECT_THAT(c.secrets, ElementsAre(SecretFile{"HOME", dir + "password", false},
                                     SecretFile{"A", dir + "user", true},
                                     SecretFile{"PASSWORD", dir + "password", false}));
  EXPECT_THAT(c.env, Contains("GONE=2"));
  EXPECT_THAT(c.env, Contains("JOB_COMPLETION_INDEX=3"));
  for (const char* name : {"A=", "HOME=", "PASSWORD="})
    EXPECT_THAT(c.env, Not(Contains(StartsWith(name))));

  const PodTemplate t = job(container);
  auto pattern = CommandPattern::of(t, t.containers[0].what, kNode);
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->command(t, {7, 3, 1}).secrets, c.secrets);

  NodeFacts homeless = kNode;
  homeless.home.clear();
  auto command = command_of(t, t.containers[0].what, {7, 3, 1}, homeless);
  ASSERT_FALSE(command.ok());
  EXPECT_THAT(command.error().message, HasSubstr("no home directory"));
}

TEST(PodDir, RefusesUnsupportedFieldRefAndMissingCommand) {
  for (const core::Container& container :
       {core::Container{.command = {"true"}, .env = {{"IP", "", "status.hostIP"}}},
        core::Container{.command = {"true"}, .env = {{"IP", "", "metadata.labels"}}},
        core::Container{.name = "main"}}) {
    PodTemplate t = job(container);
    auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
    ASSERT_FALSE(command.ok());
    EXPECT_THAT(command.error().message,
                testing::AnyOf(HasSubstr("env IP: unsupported fieldRef"), HasSubstr("no command")));
  }
}

TEST(PodDir, WorkingDirIsRelativeToStartDir) {
  EXPECT_EQ(run({.command = {"true"}}).cwd, "/start");
  EXPECT_EQ(run({.command = {"true"}, .working_dir = "/data"}).cwd, "/data");
  EXPECT_EQ(run({.command = {"true"}, .working_dir = "sub"}).cwd, "/start/sub");
}

TEST(Note, ParsesWhatItPrintsAndRejectsDamagedText) {
  Note note{30'000, "uid-1", "sum-3-bcdfg", "main"};
  Note back = Note::parse(note.text());
  EXPECT_EQ(back.grace_ms, note.grace_ms);
  EXPECT_EQ(back.job_uid, note.job_uid);
  EXPECT_EQ(back.pod_name, note.pod_name);
  EXPECT_EQ(back.container, note.container);
  for (const char* damaged : {"", "2 1 a b c", "3 1 a b c", "1 x a b c", "1 5 a"}) {
    EXPECT_EQ(Note::parse(damaged).job_uid, "") << damaged;
  }
}

TEST(Note, RoundTripsPlannedPodWithDevices) {
  auto devices = std::make_shared<const core::node::DeviceMap>(
      core::node::DeviceMap{{"amd.com/gpu", {1}}, {"nvidia.com/gpu", {0, 12}}});
  for (const auto& held : {core::node::DeviceMapPtr{}, core::node::DeviceMapPtr{devices}}) {
    Note note{30'000, "uid-1", "sum-3-bcdfg", "main", true, 4, 7, 123'456, held};
    Note back = Note::parse(note.text());
    EXPECT_EQ(back.container, "main");
    EXPECT_TRUE(back.planned);
    EXPECT_EQ(back.generation, 4);
    EXPECT_EQ(back.level, 7);
    EXPECT_EQ(back.pod_started_at, 123'456);
    ASSERT_EQ(back.devices != nullptr, held != nullptr);
    if (held) {
      EXPECT_EQ(*back.devices, *held);
    }
  }
}

TEST(Note, RemembersWhyAPodWithAnEpilogWasEnded) {
  Note note{30'000, "uid-1", "sum-3-bcdfg", "_epilog", true, 4, 0, 123'456};
  note.stop = core::EndCause::deadline;
  EXPECT_EQ(Note::parse(note.text()).stop, core::EndCause::deadline);
  EXPECT_FALSE(Note::parse(note.text()).used.known());
  note.used = {1, 2, 3};
  EXPECT_EQ(Note::parse(note.text()).stop, core::EndCause::deadline);
  EXPECT_EQ(Note::parse(note.text()).used.peak_bytes, 3u);
  EXPECT_FALSE(Note::parse(note.text() + "9").stop) << "a cause that we do not know";
  note.stop.reset();
  EXPECT_FALSE(Note::parse(note.text()).stop);
}

TEST(PodDir, HooksGetTheFactsAndNothingOfTheJob) {
  PodTemplate t = job({.command = {"true"}, .env = {{"LD_PRELOAD", "evil", ""}}});
  t.containers[0].memory_limit_bytes = 1 << 20;
  const Command hook = core::node::hook_command(t, {7, 3, 1}, kNode, "/site/prolog");
  EXPECT_EQ(hook.argv, std::vector<std::string>{"/site/prolog"});
  EXPECT_EQ(hook.cwd, "/");
  EXPECT_THAT(hook.env, Contains("MUSTER_JOB_NAME=" + t.job_name));
  EXPECT_THAT(hook.env, Contains("JOB_COMPLETION_INDEX=3"));
  EXPECT_THAT(hook.env, Contains("MUSTER_MEMORY_LIMIT_BYTES=1048576"));
  EXPECT_THAT(hook.env, testing::Not(Contains("LD_PRELOAD=evil")));
  // Of what pods know, all.
  const auto pod = command_of(t, t.containers[0].what, {7, 3, 1}, kNode);
  ASSERT_TRUE(pod.ok());
  for (const std::string& variable : pod->env)
    if (variable.starts_with("MUSTER_")) {
      EXPECT_THAT(hook.env, Contains(variable));
    }
}

TEST(PodDir, DevicesSetVisibleDevicesVariables) {
  core::node::DeviceMap devices{{"nvidia.com/gpu", {0, 2}}, {"example.org/x-1", {3}}};
  PodTemplate t = job({.command = {"true"}});
  auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode, devices);
  ASSERT_TRUE(command.ok());
  for (const char* want : {"MUSTER_RESOURCE_nvidia_com_gpu=0,2", "CUDA_VISIBLE_DEVICES=0,2",
                           "NVIDIA_VISIBLE_DEVICES=0,2", "MUSTER_RESOURCE_example_org_x_1=3"}) {
    EXPECT_THAT(command->env, Contains(want));
  }
}

TEST(PodDir, ContainersWithoutGpusSeeNone) {
  PodTemplate t = job({.command = {"true"}});
  core::node::DeviceMap devices{{"amd.com/gpu", {1}}};
  core::node::hide_others(devices, {"amd.com/gpu", "example.org/x", "nvidia.com/gpu"});
  auto command = command_of(t, t.containers[0].what, {7, 3, 1}, kNode, devices);
  ASSERT_TRUE(command.ok());
  for (const char* want : {"ROCR_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=-1",
                           "NVIDIA_VISIBLE_DEVICES=void", "MUSTER_RESOURCE_nvidia_com_gpu="})
    EXPECT_THAT(command->env, Contains(want));
  EXPECT_FALSE(devices.contains("example.org/x"));
  const core::Container own{.command = {"true"}, .env = {{"CUDA_VISIBLE_DEVICES", "2", ""}}};
  command = command_of(t, own, {7, 3, 1}, kNode, devices);
  ASSERT_TRUE(command.ok());
  EXPECT_THAT(command->env, Contains("CUDA_VISIBLE_DEVICES=2")) << "the user's own wins";
  core::node::DeviceMap none;
  core::node::hide_others(none, {});
  EXPECT_TRUE(none.empty()) << "the node declares no GPUs";
}

TEST(PodTemplate, PlansAndSharesDevices) {
  PodTemplate t = job({.command = {"true"}});
  EXPECT_EQ(plan_of(t), nullptr) << "the usual pod needs none";
  t.init_containers = 1;
  t.containers = {core::node::TemplateContainer{.devices = {{"gpu", 3}}},
                  core::node::TemplateContainer{.devices = {{"gpu", 1}}},
                  core::node::TemplateContainer{.devices = {}},
                  core::node::TemplateContainer{.devices = {{"gpu", 1}}}};
  auto plan = plan_of(t);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->init_containers, 1);
  EXPECT_EQ(plan->containers, 3);
  EXPECT_EQ(plan->devices, (core::node::DeviceCounts{{"gpu", 3}}))
      << "the largest init container, or all others together";
  core::node::DeviceMap held{{"gpu", {1, 2, 5}}};
  EXPECT_EQ(devices_of(t, 0, held), held);
  EXPECT_EQ(devices_of(t, 1, held), (core::node::DeviceMap{{"gpu", {1}}}));
  EXPECT_EQ(devices_of(t, 2, held), core::node::DeviceMap{});
  EXPECT_EQ(devices_of(t, 3, held), (core::node::DeviceMap{{"gpu", {2}}}));
}

}  // namespace
}  // namespace muster::agent
