// Command lines become options, or exit code 2 with a helpful message.
#include "cli/grammar/app.hpp"

#include "cli/verbs/daemons/daemon_options.hpp"
#include "cli/verbs/daemons/dev.hpp"
#include "cli/verbs/daemons/lead.hpp"
#include "cli/verbs/jobs/change.hpp"
#include "cli/verbs/jobs/delete.hpp"
#include "cli/verbs/jobs/wait.hpp"
#include "cli/verbs/run/exec.hpp"
#include "cli/verbs/run/retry.hpp"
#include "cli/verbs/run/run_options.hpp"
#include "cli/verbs/show/coordinators.hpp"
#include "cli/verbs/show/describe.hpp"
#include "cli/verbs/show/explain.hpp"
#include "cli/verbs/show/get.hpp"
#include "cli/verbs/show/logs.hpp"
#include "cli/verbs/show/top.hpp"
#include "cli/verbs/show/trace.hpp"
#include "cli/verbs/show/why.hpp"
#include "client/terminal/exit_codes.hpp"
#include "drill/drill_options.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster::cli {
namespace {

Parsed parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "muster");
  return parse(static_cast<int>(words.size()), words.data());
}

template <class T>
T options(std::vector<const char*> words) {
  Parsed p = parsed(std::move(words));
  EXPECT_TRUE(p.call.has_value());
  if (!p.call || p.call->as<T>() == nullptr) {
    ADD_FAILURE() << "not these options";
    return {};
  }
  return *p.call->as<T>();
}

// The message on stderr about wrong words, or "" if they are accepted.
std::string complaint(std::vector<const char*> words) {
  testing::internal::CaptureStderr();
  const Parsed p = parsed(std::move(words));
  const std::string said = testing::internal::GetCapturedStderr();
  if (p.call) return "";
  EXPECT_EQ(p.exit_code, kUsage);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(said.rfind("muster: ", 0), 0u) << said;
  return said;
}

TEST(App, RunTakesAManifest) {
  EXPECT_EQ(options<RunOptions>({"run", "job.yaml"}).file, "job.yaml");
  EXPECT_EQ(options<RunOptions>({"run", "-f", "-"}).file, "-");
  const auto o = options<RunOptions>(
      {"run", "--slots", "3", "--data-dir", "d", "--timeout", "1m30s", "job.yaml"});
  EXPECT_EQ(o.slots, 3);
  EXPECT_EQ(o.data_dir, "d");
  EXPECT_EQ(o.timeout_ms, 90'000);
}

TEST(App, RunTakesACommandWithItsDashes) {
  const auto o = options<RunOptions>(
      {"run", "-n", "4", "-j", "2", "--retries", "0", "--", "echo", "-n", "--", "--help"});
  EXPECT_EQ(o.completions, 4);
  EXPECT_EQ(o.parallelism, 2);
  EXPECT_EQ(o.retries, 0);
  EXPECT_EQ(o.command, (std::vector<std::string>{"echo", "-n", "--", "--help"}));
  EXPECT_EQ(options<RunOptions>({"run", "-n", "4", "true"}).command,
            std::vector<std::string>{"true"});
  EXPECT_FALSE(options<RunOptions>({"run", "-n", "4", "true"}).retries.has_value());
}

// A file in a directory that is removed with it.
class ScriptFile {
 public:
  explicit ScriptFile(const std::string& text, bool executable = false) {
    std::string name = "/tmp/muster-script-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    path_ = dir_ + "/job.sh";
    std::ofstream(path_) << text;
    if (executable) std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~ScriptFile() { std::filesystem::remove_all(dir_); }
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string dir_, path_;
};

TEST(App, RunTakesValuesAsParallelDoes) {
  using Words = std::vector<std::string>;
  using Lists = std::vector<Words>;
  auto o = options<RunOptions>({"run", "-j", "2", "gzip", "-9", ":::", "a b", "--", "-j"});
  EXPECT_EQ(o.parallelism, 2);
  EXPECT_EQ(o.command, (Words{"gzip", "-9", "{}"}));
  EXPECT_EQ(o.each.values, (Lists{{"a b", "--", "-j"}}));
  o = options<RunOptions>({"run", "--", "echo", ":::", "1", "2", ":::", "x"});
  EXPECT_EQ(o.command, (Words{"echo", "{1}", "{2}"}));
  EXPECT_EQ(o.each.values, (Lists{{"1", "2"}, {"x"}}));
  EXPECT_EQ(options<RunOptions>({"run", "echo", "<{/.}>", ":::", "x"}).command,
            (Words{"echo", "<{/.}>"}));
  EXPECT_EQ(options<RunOptions>({"run", "echo", "{1}", ":::", "x", ":::", "y"}).command,
            (Words{"echo", "{1}"}));
  o = options<RunOptions>({"run", "-n", "2", "echo", ":::", "x"});
  EXPECT_EQ(o.command, (Words{"echo", ":::", "x"})) << "there is another source of indexes";
  EXPECT_TRUE(o.each.values.empty());
  const ScriptFile program("#!/bin/sh\necho\n", true);
  EXPECT_FALSE(options<RunOptions>({"run", program.path(), ":::", "a"}).script.has_value());
  EXPECT_NE(complaint({"run", "echo", ":::"}).find("::: needs values"), std::string::npos);
  EXPECT_NE(complaint({"run", "echo", ":::", "x", ":::"}).find("::: needs values"),
            std::string::npos);
  EXPECT_NE(complaint({"run", ":::", "x"}).find("::: needs a command: muster run CMD ::: A B C"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "-f", "job.yaml", "echo", ":::", "x"}).find("mutually exclusive"),
            std::string::npos);
}

TEST(App, RunRejectsWrongArguments) {
  EXPECT_NE(complaint({"run"}).find("JOB.yaml"), std::string::npos);
  EXPECT_NE(complaint({"run", "a.yaml", "b.yaml"}), "");
  EXPECT_NE(complaint({"run", "-n", "3"}).find("needs a command"), std::string::npos);
  EXPECT_NE(complaint({"run", "--", "true"}).find("-n"), std::string::npos);
  EXPECT_NE(complaint({"run", "-n", "0", "--", "true"}), "");
  EXPECT_NE(complaint({"run", "-j", "2", "job.yaml"}), "");
  EXPECT_NE(complaint({"run", "run", "-n", "2", "--", "true"}).find("before `--`"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "-n", "2", "-f", "job.yaml", "--", "true"}), "");
  EXPECT_NE(complaint({"run", "--timeout", "soon", "job.yaml"}).find("--timeout"),
            std::string::npos);
}

TEST(App, ScriptIsOneIndexAndWhatFollowsAreItsArguments) {
  const ScriptFile script("#!/bin/sh\necho \"$@\"\n");
  const auto o = options<RunOptions>({"run", "-k", script.path(), "--epochs", "3", "-n", "2"});
  ASSERT_TRUE(o.script.has_value());
  EXPECT_EQ(o.script->name, "job.sh");
  EXPECT_EQ(o.completions, 1);
  EXPECT_TRUE(o.keep_order);
  EXPECT_EQ(o.command, (std::vector<std::string>{"--epochs", "3", "-n", "2"}));
  EXPECT_EQ(options<RunOptions>({"run", script.path(), "a", "--", "-b"}).command,
            (std::vector<std::string>{"a", "--", "-b"}));
  EXPECT_EQ(options<RunOptions>({"run", "-n", "4", script.path(), "--", "-b"}).command,
            std::vector<std::string>{"-b"});
  EXPECT_EQ(options<RunOptions>({"run", "-n", "4", script.path()}).completions, 4);
  testing::internal::CaptureStderr();
  options<RunOptions>({"run", script.path(), "--epochs", "--dry-run"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "muster: warning: --dry-run is an argument of " + std::string(script.path()) +
                ": flags of muster run must precede it\n");
}

TEST(App, FlagsOfAScriptYieldToTheCommandLine) {
  const ScriptFile script(
      "#!/bin/bash\n"
      "#SBATCH -J My_Sweep -a 4-10:2 --time=10 --mem=4000 -p long\n"
      "#MUSTER --retries 3 --time 1h --env A=1 # more\n"
      "hostname\n");
  const auto o = options<RunOptions>({"run", script.path()});
  EXPECT_EQ(o.name, "my-sweep");
  EXPECT_EQ(o.exists, IfExists::number);
  EXPECT_EQ(o.each.array, "4-10:2");
  EXPECT_EQ(o.resources.memory, "4000Mi");
  EXPECT_EQ(o.resources.time_s, 3600) << "#MUSTER wins over #SBATCH";
  EXPECT_EQ(o.retries, 3);
  EXPECT_EQ(o.partitions, std::vector<std::string>{"long"});
  EXPECT_TRUE(o.warnings.empty()) << "it may be a queue";
  const auto other =
      options<RunOptions>({"run", "-n", "2", "-J", "b", "-t", "5m", "--env", "B=2", script.path()});
  EXPECT_EQ(other.name, "b");
  EXPECT_EQ(other.exists, IfExists::refuse) << "the name was typed";
  EXPECT_EQ(other.completions, 2);
  EXPECT_EQ(other.each.array, "");
  EXPECT_EQ(other.resources.time_s, 300);
  EXPECT_EQ(other.environment, (Variables{{"A", "1"}, {"B", "2"}}));
}

TEST(App, WrongScriptsAreRefusedWithTheirLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"#!/bin/sh\r\n", "job.sh:1: ends with CR LF"},
      {"#SBATCH -n 1\n", "job.sh:1: a script starts with #!"},
      {"#!/bin/sh\n#SBATCH -n 4\n", "job.sh:2: -n 4: a script runs as one task on one node"},
      {"#!/bin/sh\n#MUSTER --retries x\n", "job.sh:2: --retries: `x`: must be a whole number"},
      {"#!/bin/sh\n\n#MUSTER --retry 1\n", "job.sh:3: `--retry`: unknown flag"},
      {"#!/bin/sh\n#MUSTER retries\n", "job.sh:2: `retries`: must be a flag of muster run"},
      {"#!/bin/sh\n#MUSTER --help\n", "job.sh:2: `--help` is for the command line"},
  };
  for (const auto& [text, said] : cases) {
    const ScriptFile script(text);
    EXPECT_NE(complaint({"run", script.path()}).find(said), std::string::npos) << said;
  }
  const ScriptFile script("#!/bin/sh\n");
  EXPECT_NE(complaint({"run", "-f", "a.yaml", script.path()}).find("mutually exclusive"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "-f", script.path()}).find("is a script, not a manifest: muster run"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "--commands", "a", script.path()}).find("mutually exclusive"),
            std::string::npos);
}

TEST(App, ExecutableForSeveralIndexesIsACommandUnlessItHasOptions) {
  const ScriptFile program("#!/bin/sh\necho\n", true);
  EXPECT_FALSE(options<RunOptions>({"run", "-n", "2", program.path()}).script.has_value());
  EXPECT_TRUE(options<RunOptions>({"run", program.path()}).script.has_value());
  const ScriptFile script("#!/bin/sh\n#SBATCH -c 1\n", true);
  EXPECT_TRUE(options<RunOptions>({"run", "--array", "1-2", script.path()}).script.has_value());
}

TEST(App, CommandsTakeNoCommand) {
  const auto o = options<RunOptions>({"run", "--commands", "jobs.txt", "-j", "2"});
  EXPECT_EQ(o.each.commands, "jobs.txt");
  EXPECT_TRUE(o.command.empty());
  EXPECT_NE(complaint({"run", "--commands", "a", "--", "sh"}).find("use --each FILE -- sh {}"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "--commands", "a", "--each", "b"}).find("mutually exclusive"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "--commands", "a", "-0"}).find("-0 applies to --each FILE"),
            std::string::npos);
}

TEST(App, OutputTakesModeOrFilePattern) {
  const auto given = [](const char* how) {
    return options<RunOptions>({"run", "--output", how, "job.yaml"});
  };
  EXPECT_EQ(options<RunOptions>({"run", "job.yaml"}).shown, Shown::automatic);
  for (const char* how : {"tag", "prefix"}) EXPECT_EQ(given(how).shown, Shown::tagged);
  for (const char* how : {"plain", "raw"}) EXPECT_EQ(given(how).shown, Shown::plain);
  EXPECT_EQ(given("none").shown, Shown::none);
  const auto files = given("out/%i");
  EXPECT_EQ(files.shown, Shown::none);
  ASSERT_TRUE(files.files.has_value());
  EXPECT_EQ(files.files->text(), "out/%i");
  EXPECT_TRUE(given("./none").files.has_value());
  EXPECT_NE(complaint({"run", "--output", "plian", "job.yaml"}).find("did you mean plain?"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "--output", "%y", "job.yaml"}).find("`%y` in %y is unknown"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "--keep-order", "--output", "%i", "job.yaml"}).find("--keep-order"),
            std::string::npos);
  EXPECT_TRUE(options<RunOptions>({"run", "-k", "job.yaml"}).keep_order);
}

TEST(App, RetryFailedNeedsADirectoryAndNoJob) {
  const auto o = options<RunOptions>({"run", "--data-dir", "d", "--retry-failed"});
  ASSERT_TRUE(o.retry.has_value());
  EXPECT_TRUE(o.retry->failed && o.retry->if_any);
  EXPECT_EQ(options<RunOptions>({"run", "--data-dir", "d", "--retry-failed", "-n", "3", "true"})
                .completions,
            3);
  EXPECT_NE(complaint({"run", "--retry-failed", "job.yaml"}).find("needs --data-dir"),
            std::string::npos);
  EXPECT_NE(complaint({"run", "--data-dir", "d", "--retry-failed", "-n", "3"}), "");
}

TEST(App, MpirunTakesFlagsOfOtherMpiruns) {
  const auto o =
      options<RunOptions>({"mpirun",    "-N",    "4",  "--slots", "8",           "-np",   "30",
                           "-x",        "A=b=c", "-x", "PATH",    "-tag-output", "--mpi", "mpich",
                           "--retries", "2",     "--", "./ring",  "-np",         "-x"});
  EXPECT_EQ(o.completions, 4);
  EXPECT_EQ(o.parallelism, 4);
  EXPECT_EQ(o.retries, 2);
  EXPECT_EQ(o.slots, 0) << "slots of the node: as many as hosts";
  EXPECT_EQ(o.command, (std::vector<std::string>{"./ring", "-np", "-x"}));
  EXPECT_EQ(o.environment.at("A"), "b=c");
  EXPECT_EQ(o.exported.names, std::vector<std::string>{"PATH"});
  EXPECT_TRUE(o.exported.for_mpi);
  EXPECT_EQ(o.shown, Shown::plain);
  ASSERT_TRUE(o.mpi.has_value());
  EXPECT_EQ(o.mpi->kind, core::MpiKind::mpich);
  EXPECT_EQ(o.mpi->slots, 8u);
  EXPECT_EQ(o.mpi->ranks, 30);
  EXPECT_EQ(o.mpi->passed, (std::vector<std::string>{"A", "PATH"}));
  EXPECT_TRUE(o.mpi->tag_output);
  const auto plain = options<RunOptions>({"mpirun", "-N", "1", "--", "true"});
  EXPECT_EQ(plain.mpi->kind, core::MpiKind::any);
  EXPECT_EQ(plain.mpi->slots, 1u);
  EXPECT_FALSE(options<RunOptions>({"run", "-n", "1", "--", "true"}).mpi.has_value());
}

TEST(App, MpirunTakesResourcesAndSettingsOfLaunchers) {
  const auto o = options<RunOptions>(
      {"mpirun", "-N",    "2",        "-ppn",   "4",     "--bind-to", "core",    "-map-by",
       "node",   "--mca", "btl",      "tcp",    "--mca", "a",         "b c",     "-oversubscribe",
       "-np",    "9",     "-c",       "8",      "--mem", "2Gi",       "-t",      "2h",
       "-p",     "night", "--detach", "--gpus", "1",     "--after",   "ok:prep", "--dry-run",
       "-o",     "json",  "--",       "./ring"});
  EXPECT_EQ(o.mpi->slots, 4u);
  EXPECT_EQ(o.mpi->ranks, 9);
  EXPECT_TRUE(o.mpi->oversubscribe && o.mpi->detach && o.dry_run && !o.mpi->batch);
  EXPECT_EQ(o.mpi->bind_to, "core");
  EXPECT_EQ(o.mpi->map_by, "node");
  EXPECT_EQ(o.mpi->mca, (std::vector<std::string>{"btl", "tcp", "a", "b c"}));
  EXPECT_EQ(o.resources.cpus, "8");
  EXPECT_EQ(o.resources.memory, "2Gi");
  EXPECT_EQ(o.resources.time_s, 7200);
  EXPECT_EQ(o.resources.queue, "night");
  EXPECT_EQ(o.resources.placement, "spread");
  EXPECT_EQ(options<RunOptions>({"mpirun", "-N", "2", "--placement", "pack", "--", "true"})
                .resources.placement,
            "pack");
  EXPECT_EQ(o.resources.after, "ok:prep");
  EXPECT_EQ(o.output, Output::json);
  EXPECT_NE(complaint({"mpirun", "-N", "2", "--mca", "btl", "--", "true"}).find("name and a value"),
            std::string::npos);
  EXPECT_NE(complaint({"mpirun", "-N", "2", "-o", "json", "--", "true"}).find("needs --dry-run"),
            std::string::npos);
  EXPECT_NE(complaint({"mpirun", "-N", "2", "--gang", "--", "true"}).find("unknown flag"),
            std::string::npos);
}

TEST(App, SubmitRefusesIncompleteMpiJobs) {
  const std::pair<std::vector<const char*>, const char*> wrong[] = {
      {{"submit", "--mpi", "auto", "--", "mpirun"}, "--mpi needs -N"},
      {{"submit", "-N", "4", "--", "mpirun"}, "--hosts requires --mpi"},
      {{"submit", "--mpi", "auto", "-N", "2"}, "-N needs a command"},
      {{"submit", "--mpi", "auto", "-N", "2", "-n", "3", "--", "a"}, "mutually exclusive"},
      {{"submit", "--mpi", "auto", "-N", "2", "-a", "1-3", "--", "a"}, "mutually exclusive"}};
  for (const auto& [words, why] : wrong)
    EXPECT_NE(complaint(words).find(why), std::string::npos) << complaint(words);
}

TEST(App, MpirunDerivesHostsFromRanks) {
  const auto o = options<RunOptions>({"mpirun", "-np", "2", "--", "true"});
  EXPECT_EQ(o.completions, 2);
  EXPECT_EQ(o.parallelism, 2);
  const auto full = options<RunOptions>({"mpirun", "-np", "9", "--slots", "4", "--", "true"});
  EXPECT_EQ(full.completions, 3);
  EXPECT_EQ(full.mpi->ranks, 9);
  EXPECT_EQ(options<RunOptions>({"mpirun", "-N", "2", "-np", "1", "--", "true"}).completions, 2);
  const std::string said = complaint({"mpirun", "-N", "2", "-np", "3", "--", "true"});
  EXPECT_NE(
      said.find(
          "--np 3: there is room for 2 ranks (2 hosts with --slots 1): use -N 3 or --slots 2, "
          "or --oversubscribe"),
      std::string::npos)
      << said;
}

// CLI11 would take "-host" for -h, print help and exit with 0.
TEST(App, P34UnknownMpirunFlagsAreErrorsNotHelp) {
  for (const char* flag : {"-host", "-hostfile", "--host", "-H"})
    EXPECT_NE(complaint({"mpirun", flag, "a", "--", "true"}).find("muster chooses the hosts"),
              std::string::npos)
        << flag;
  EXPECT_NE(
      complaint({"mpirun", "-report-pid", "2", "--", "true"}).find("`--report-pid`: unknown flag"),
      std::string::npos);
  EXPECT_NE(complaint({"get", "-hosts"}).find("unknown flag"), std::string::npos);
}

TEST(App, MpirunRejectsWrongArguments) {
  EXPECT_NE(complaint({"mpirun", "--", "true"}).find("needs --hosts"), std::string::npos);
  EXPECT_NE(complaint({"mpirun", "-N", "2"}).find("needs a program"), std::string::npos);
  EXPECT_NE(complaint({"mpirun", "-N", "0", "--", "true"}), "");
  EXPECT_NE(complaint({"mpirun", "-N", "2", "--slots", "5000", "--", "true"}), "");
  EXPECT_NE(complaint({"mpirun", "-N", "2", "--mpi", "lam", "--", "true"}).find("openmpi"),
            std::string::npos);
  EXPECT_NE(complaint({"mpirun", "-N", "2", "-x", "NOT_SET_HERE", "--", "true"}).find("-x NAME="),
            std::string::npos);
  EXPECT_NE(complaint({"mpirun", "-N", "2", "true", "--", "a"}).find("before `--`"),
            std::string::npos);
}

TEST(App, ExecTakesPodOrJobAndCommand) {
  const auto o = options<ExecOptions>({"exec", "-n", "team", "sweep-7-x2bqd", "--", "ls", "-l"});
  EXPECT_EQ(o.pod, "sweep-7-x2bqd");
  EXPECT_EQ(o.target.ns, "team");
  EXPECT_EQ(o.command, (std::vector<std::string>{"ls", "-l"}));
  EXPECT_EQ(options<ExecOptions>({"exec", "pod/p", "--", "ls"}).pod, "p");
  const auto job = options<ExecOptions>({"exec", "job/j", "--index", "3", "--", "ls"});
  EXPECT_EQ(job.job, "j");
  EXPECT_EQ(job.index, 3);
  EXPECT_FALSE(options<ExecOptions>({"exec", "job/j", "--", "ls"}).index.has_value());

  EXPECT_FALSE(o.input || o.terminal);
  for (const char* flag : {"-i", "--stdin", "-it", "-ti"})
    EXPECT_TRUE(options<ExecOptions>({"exec", flag, "p", "--", "sh"}).input) << flag;
  EXPECT_FALSE(options<ExecOptions>({"exec", "-i", "p", "--", "sh"}).terminal);
  EXPECT_TRUE(options<ExecOptions>({"exec", "--stdin", "--tty", "p", "--", "sh"}).terminal);
  for (const char* flag : {"-t", "--tty"})
    EXPECT_NE(complaint({"exec", flag, "p", "--", "sh"}).find("needs -i"), std::string::npos)
        << flag;
  EXPECT_NE(complaint({"exec", "p"}).find("needs a command"), std::string::npos);
  EXPECT_NE(complaint({"exec", "p", "ls"}).find("after `--`"), std::string::npos);
  EXPECT_NE(complaint({"exec", "p", "--index", "3", "--", "ls"}).find("jobs only"),
            std::string::npos);
  EXPECT_NE(complaint({"exec", "node/n", "--", "ls"}).find("job/J"), std::string::npos);
  EXPECT_NE(complaint({"exec"}), "");
  EXPECT_NE(complaint({"logs", "p", "--", "ls"}).find("run, submit, mpirun, shell, exec"),
            std::string::npos);
}

TEST(App, CoordinatorTakesItsFlags) {
  const auto o = options<CoordinatorOptions>(
      {"coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--node-grace", "5s",
       "--pod-failure-backoff-base=100ms", "--insecure", "--log-level", "debug"});
  EXPECT_EQ(o.options.data_dir, "d");
  EXPECT_EQ(o.options.api, "127.0.0.1:0");
  EXPECT_EQ(o.options.node_grace_ms, 5'000);
  EXPECT_EQ(o.options.backoff_base_ms, 100);
  EXPECT_TRUE(o.options.insecure);
  EXPECT_EQ(o.log_level, "debug");
  EXPECT_EQ(o.log_format, log::Format::text);
  EXPECT_NE(complaint({"coordinator"}).find("--data-dir"), std::string::npos);
  EXPECT_NE(complaint({"coordinator", "--data-dir", "d", "--node-grace", "x"}).find("--node-grace"),
            std::string::npos);
  EXPECT_NE(complaint({"coordinator", "--data-dir", "d", "--log-level", "loud"}), "");
  EXPECT_EQ(options<CoordinatorOptions>({"coordinator", "--data-dir", "d", "--log-format", "json"})
                .log_format,
            log::Format::json);
  EXPECT_NE(complaint({"coordinator", "--data-dir", "d", "--log-format", "xml"}).find("text, json"),
            std::string::npos)
      << complaint({"coordinator", "--data-dir", "d", "--log-format", "xml"});
}

TEST(App, AgentTakesItsFlags) {
  const auto o = options<AgentOptions>({"agent", "--coordinator", "h:1", "--work-dir", "w", "--cpu",
                                        "1.5", "--memory", "2Gi", "--label", "disk=ssd", "--label",
                                        "zone=", "--log-keep", "1d", "--log-max", "1k"});
  EXPECT_EQ(o.options.coordinators, std::vector<std::string>{"h:1"});
  EXPECT_EQ(o.options.cpu_millis, 1500u);
  EXPECT_EQ(o.options.memory_bytes, 2ull << 30);
  EXPECT_EQ(o.options.labels, (std::map<std::string, std::string>{{"disk", "ssd"}, {"zone", ""}}));
  EXPECT_EQ(o.options.log_keep_ms, 86'400'000);
  EXPECT_EQ(o.options.log_max_bytes, 1000u);
  const auto hollow =
      options<AgentOptions>({"agent", "--hollow", "--slots", "1000", "--hollow-duration", "100ms"});
  EXPECT_TRUE(hollow.options.hollow);
  EXPECT_EQ(hollow.options.hollow_duration_ms, 100);
  EXPECT_EQ(options<AgentOptions>({"agent", "--hollow", "--hollow-duration", "0"})
                .options.hollow_duration_ms,
            0);
  EXPECT_NE(complaint({"agent"}).find("--work-dir"), std::string::npos);
  EXPECT_NE(complaint({"agent", "--work-dir", "w", "--label", "x"}).find("KEY=VALUE"),
            std::string::npos);
  EXPECT_NE(complaint({"agent", "--work-dir", "w", "--memory", "-1"}).find("--memory"),
            std::string::npos);
}

TEST(App, ListFlagTakesOneValueForEachOccurrence) {
  EXPECT_EQ(options<CoordinatorOptions>(
                {"coordinator", "--data-dir", "d", "--admins", "ops", "--admins", "staff"})
                .options.roles.admins,
            (std::vector<std::string>{"ops", "staff"}));
  EXPECT_NE(complaint({"coordinator", "--data-dir", "d", "--admins", "ops", "staff"})
                .find("`staff`: unexpected argument"),
            std::string::npos);
  EXPECT_NE(complaint({"token", "create", "--coordinator", "head2:7119", "--user", "ada"})
                .find("--node, --user, --coordinator and --pool are mutually exclusive"),
            std::string::npos);
  EXPECT_NE(complaint({"token", "create", "--coordinator", "head2:7119", "--slots-max", "4"})
                .find("only for `--node NAME` and `--pool NAME`"),
            std::string::npos);
  EXPECT_NE(complaint({"token", "create", "--coordinator", "head2:7119", "--ttl", "8d"})
                .find("--ttl: must be 1m to 7d"),
            std::string::npos);
  EXPECT_NE(complaint({"token", "list", "--coordinator", "head2:7119"})
                .find("only for `muster token create`"),
            std::string::npos);
  EXPECT_EQ(complaint({"token", "create", "--coordinator", "head2:7119", "--ttl", "7d"}), "");
  EXPECT_NE(complaint({"token", "create", "--node", "a", "--label", "a=b", "x"})
                .find("`x`: only `muster token revoke` takes an ID"),
            std::string::npos);
  EXPECT_EQ(complaint({"create", "-f", "a", "b", "-f", "c"}), "");
  EXPECT_EQ(complaint({"apply", "-f", "a", "b"}), "");
}

TEST(App, RepeatedFlagOfOneValueIsRefused) {
  for (const char* flag : {"--name", "--cpus"})
    EXPECT_NE(complaint({"run", flag, "1", flag, "2", "-n", "1", "--", "true"})
                  .find(std::string(flag) + ": given more than once"),
              std::string::npos)
        << flag;
}

TEST(App, GetTakesKindNamesAndOutput) {
  const auto o = options<GetOptions>({"get", "po", "a", "b", "-o", "json", "-n", "x"});
  EXPECT_EQ(o.kind, Kind::pod);
  EXPECT_EQ(o.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(o.output, Output::json);
  EXPECT_EQ(o.target.ns, "x");
  EXPECT_EQ(options<GetOptions>({"get", "job/a", "jobs/b"}).names,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options<GetOptions>({"get", "jobs", "-w", "-A"}).watch);
  EXPECT_NE(complaint({"get", "podz"}).find("did you mean pods?"), std::string::npos);
  EXPECT_NE(complaint({"get", "jobs", "-o", "xml"}), "");
  EXPECT_NE(complaint({"get", "jobs", "a", "-A"}), "");
  EXPECT_NE(complaint({"get"}), "");
}

TEST(App, AttemptsWhyAndRetryTakeTheirArguments) {
  const auto attempts = options<AttemptsOptions>({"get", "attempts", "job/j", "--index", "1,4"});
  EXPECT_EQ(attempts.job, "j");
  EXPECT_EQ(attempts.index, "1,4");
  EXPECT_TRUE(options<AttemptsOptions>({"get", "attempts", "j", "--failed"}).failed);
  EXPECT_NE(complaint({"get", "attempts"}), "");
  EXPECT_NE(complaint({"get", "attempts", "job/j", "-w"}), "");
  EXPECT_NE(complaint({"get", "pods", "--failed"}), "");
  EXPECT_EQ(options<WhyOptions>({"why", "job/j"}).job, "j");
  EXPECT_FALSE(options<WhyOptions>({"why", "j"}).index);
  EXPECT_EQ(options<WhyOptions>({"why", "job/j/950"}).index, 950);
  EXPECT_EQ(options<WhyOptions>({"why", "j/950"}).job, "j");
  EXPECT_NE(complaint({"why", "job/j/x"}), "");
  EXPECT_NE(complaint({"why", "job/j/1,2"}), "");
  EXPECT_NE(complaint({"why", "pod/p"}), "");
  const auto retry = options<RetryOptions>({"retry", "job/j", "--failed", "--wait"});
  EXPECT_TRUE(retry.wishes.failed && retry.wait);
  const auto here = options<RetryOptions>({"retry", "--data-dir", "d", "--slots", "3"});
  EXPECT_EQ(here.data_dir, "d");
  EXPECT_EQ(here.slots, 3);
  EXPECT_EQ(options<RetryOptions>({"retry", "job/j", "--data-dir", "d"}).job, "j");
  EXPECT_NE(complaint({"retry"}).find("which job?"), std::string::npos);
  EXPECT_NE(complaint({"retry", "job/j", "--slots", "3"}), "");
  EXPECT_NE(complaint({"retry", "--data-dir", "d", "--wait"}), "");
  EXPECT_NE(complaint({"retry", "job/j", "--failed", "--index", "1"}), "");
}

TEST(App, TraceTakesAPodOrAnIndex) {
  EXPECT_EQ(options<TraceOptions>({"trace", "sweep-3-x7k2p"}).pod, "sweep-3-x7k2p");
  EXPECT_EQ(options<TraceOptions>({"trace", "pod/sweep-3-x7k2p"}).pod, "sweep-3-x7k2p");
  for (const auto& words : {std::vector<const char*>{"trace", "job/j/3"},
                            {"trace", "j/3"},
                            {"trace", "job/j", "--index", "3"}}) {
    const auto o = options<TraceOptions>(words);
    EXPECT_EQ(o.job, "j");
    EXPECT_EQ(o.index, 3);
    EXPECT_EQ(o.pod, "");
  }
  EXPECT_EQ(options<TraceOptions>({"trace", "job/j", "--task", "8"}).task, 8);
  EXPECT_EQ(options<TraceOptions>({"trace", "p", "-o", "json"}).output, Output::json);
  const std::pair<std::vector<const char*>, std::string> rows[] = {
      {{"trace"}, "POD|job/J/INDEX"},
      {{"trace", "job/j"}, "`job/j`: name an index: job/J/INDEX, --index I or --task N"},
      {{"trace", "p", "--index", "3"}, "--index: `p` is a pod; it is for job/J"},
      {{"trace", "pod/p", "--task", "3"}, "--task: `pod/p` is a pod; it is for job/J"},
      {{"trace", "job/j/3", "--index", "3"}, "--index: `job/j/3` names an index already"},
      {{"trace", "job/j/x"}, "`job/j/x`: must be job/J or job/J/INDEX, one index"},
      {{"trace", "node/n1"}, "`node/n1`: must be POD, pod/POD or job/J"},
      {{"trace", "p", "-o", "tsv"}, "json"},
  };
  for (const auto& [words, why] : rows)
    EXPECT_NE(complaint(words).find(why), std::string::npos) << complaint(words);
}

TEST(App, LogsWaitDeleteAndDescribeTakeTheirArguments) {
  const auto logs = options<LogsOptions>(
      {"logs", "job/j", "--index", "7", "--attempt", "0", "--tail", "3", "-f"});
  EXPECT_EQ(logs.job, "j");
  EXPECT_EQ(logs.indexes, "7");
  EXPECT_EQ(logs.attempt, 0);
  EXPECT_EQ(logs.tail, 3);
  EXPECT_EQ(options<LogsOptions>({"logs", "p-1-x"}).pod, "p-1-x");
  EXPECT_NE(complaint({"logs", "p", "--index", "1"}), "");
  EXPECT_NE(complaint({"logs", "job/j", "--attempt", "1"}), "");
  EXPECT_EQ(options<LogsOptions>({"logs", "job/j", "--index", "3,7-9"}).indexes, "3,7-9");
  EXPECT_EQ(options<LogsOptions>({"logs", "job/j", "--index", "5,1-3,2"}).indexes, "1-3,5");
  EXPECT_NE(complaint({"logs", "job/j", "--index", ","}).find("--index: the set is empty"),
            std::string::npos);
  EXPECT_TRUE(options<LogsOptions>({"logs", "job/j", "--failed"}).failed);
  EXPECT_NE(complaint({"logs", "job/j", "--index", "9-7"}), "");
  EXPECT_NE(complaint({"logs", "job/j", "--index", "1", "--failed"}), "");
  EXPECT_NE(complaint({"logs", "p", "--failed"}), "");

  const auto wait =
      options<WaitOptions>({"wait", "job/j", "--for=condition=complete", "--timeout", "60s"});
  EXPECT_EQ(wait.condition, "Complete");
  EXPECT_EQ(wait.timeout_ms, 60'000);
  EXPECT_TRUE(options<WaitOptions>({"wait", "job", "j", "--for=delete"}).deleted);
  EXPECT_FALSE(
      options<WaitOptions>({"wait", "j", "--for=condition=Suspended=false"}).condition_value);
  EXPECT_EQ(options<WaitOptions>({"wait", "j"}).condition, "");
  EXPECT_EQ(options<WaitOptions>({"wait", "job/a", "job/b"}).jobs,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(complaint({"wait", "pod/p"}), "");
  EXPECT_NE(complaint({"wait", "j", "--for=ready"}), "");

  EXPECT_EQ(options<DeleteOptions>({"delete", "job", "a", "b"}).names,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options<DeleteOptions>({"delete", "job/a"}).names, std::vector<std::string>{"a"});
  EXPECT_EQ(options<DeleteOptions>({"delete", "po", "p"}).kind, Kind::pod);
  EXPECT_EQ(options<DeleteOptions>({"delete", "-f", "a", "-f", "-"}).files,
            (std::vector<std::string>{"a", "-"}));
  EXPECT_EQ(options<DeleteOptions>({"delete", "jobs", "-l", "a=b"}).selector, "a=b");
  EXPECT_TRUE(options<DeleteOptions>({"delete", "jobs", "--all"}).all);
  EXPECT_NE(complaint({"delete"}), "");
  EXPECT_NE(complaint({"delete", "sweep"}), "");
  EXPECT_NE(complaint({"delete", "nodes", "--all"}), "");
  EXPECT_NE(complaint({"delete", "event/e"}), "");
  EXPECT_NE(complaint({"delete", "job", "a", "-f", "b"}), "");
  EXPECT_NE(complaint({"delete", "job", "a", "--all"}), "");
  EXPECT_NE(complaint({"delete", "job/a", "pod/b"}), "");
  EXPECT_NE(complaint({"delete", "job"}), "");

  EXPECT_EQ(options<DescribeOptions>({"describe", "node", "n"}).kind, Kind::node);
  EXPECT_EQ(options<DescribeOptions>({"describe", "job/j"}).name, "j");
  const auto any = options<DescribeOptions>({"describe", "sweep"});
  EXPECT_FALSE(any.kind.has_value());
  EXPECT_EQ(any.name, "sweep");
  EXPECT_NE(complaint({"describe", "job"}), "");
}

TEST(App, ConnectionFlagsMayPrecedeVerb) {
  const auto get = options<GetOptions>({"-n", "lab", "--api=h:1", "get", "jobs"});
  EXPECT_EQ(get.target.ns, "lab");
  EXPECT_EQ(get.target.api, "h:1");
  // Flags after the verb take precedence.
  EXPECT_EQ(options<GetOptions>({"-nlab", "get", "jobs", "-n", "mine"}).target.ns, "mine");
  // Before the verb, -n is the namespace, even if the verb has another -n.
  const auto run = options<RunOptions>({"-n", "lab", "run", "-n", "4", "--", "true"});
  EXPECT_EQ(run.target.ns, "lab");
  EXPECT_EQ(run.completions, 4);
  // Verbs without namespaces ignore it.
  EXPECT_EQ(options<ChangeOptions>({"-n", "lab", "--request-timeout", "9s", "cordon", "n"})
                .target.request_timeout_ms,
            9'000);
  EXPECT_NE(complaint({"--api", "h:1", "coordinator", "--data-dir", "d"}), "");
  EXPECT_NE(complaint({"-o", "json", "get", "jobs"}).find("follow the command"), std::string::npos);
  EXPECT_NE(complaint({"run", "-n", "lab", "--", "true"}).find("--namespace"), std::string::npos);
}

TEST(App, EveryClientKeyIsAFlag) {
  for (const Key& key : keys_of(Section::client))
    EXPECT_NE(complaint({"get", "jobs", ("--" + std::string(key.name)).c_str()})
                  .find(std::string(key.name) + " needs a value: " + key.type),
              std::string::npos)
        << key.name;
  EXPECT_EQ(options<GetOptions>({"get", "jobs", "--coordinator-user", "root"})
                .target.log_in.coordinator_user,
            "root");
}

TEST(App, DrillHasItsOwnDefaults) {
  const auto o = options<DrillOptions>({"drill", "storm", "--local"});
  EXPECT_EQ(o.times, DrillOptions().times);
  EXPECT_EQ(o.canary, DrillOptions().canary);
  EXPECT_EQ(o.node_grace_ms, DrillOptions().node_grace_ms);
  EXPECT_EQ(o.restart_within_ms, DrillOptions().restart_within_ms);
  EXPECT_EQ(options<DrillOptions>({"drill", "storm", "--local", "-o", "json"}).output,
            Output::json);
  // Also if the value is the default.
  EXPECT_NE(complaint({"drill", "storm", "--local", "--node-grace", "40s"}).find("not for --local"),
            std::string::npos);
  EXPECT_NE(complaint({"drill", "storm", "--replay", "x", "--times", "1"}).find("has its own"),
            std::string::npos);
}

TEST(App, GetTakesSeveralKinds) {
  const auto all = options<GetOptions>({"get", "all", "-A"});
  EXPECT_EQ(all.kind, Kind::job);
  EXPECT_EQ(all.more, std::vector<Kind>{Kind::pod});
  EXPECT_EQ(options<GetOptions>({"get", "no,ev,no"}).more, std::vector<Kind>{Kind::event});
  EXPECT_TRUE(options<GetOptions>({"get", "po"}).more.empty());
  EXPECT_EQ(options<GetOptions>({"get", "cm"}).kind, Kind::config_map);
  EXPECT_EQ(options<GetOptions>({"get", "ns"}).kind, Kind::ns);
  EXPECT_NE(complaint({"get", "jobs,podz"}), "");
  EXPECT_NE(complaint({"get", "all", "-w"}), "");
  EXPECT_NE(complaint({"get", "all", "x"}), "");
  EXPECT_NE(complaint({"get", "jobs,"}), "");
}

TEST(App, GetAndDescribeTakeCoordinators) {
  EXPECT_TRUE(options<CoordinatorsOptions>({"get", "coordinators"}).names.empty());
  EXPECT_EQ(options<CoordinatorsOptions>({"get", "coordinators", "-o", "wide"}).output,
            Output::wide);
  EXPECT_FALSE(options<CoordinatorsOptions>({"get", "coordinators", "--no-headers"}).headers);
  const std::vector<std::string> both = {"a:1", "b:1"};
  EXPECT_EQ(options<CoordinatorsOptions>({"get", "coordinator", "a:1", "b:1"}).names, both);
  EXPECT_EQ(
      options<CoordinatorsOptions>({"get", "coordinator/a:1", "coordinators.muster.dev/b:1"}).names,
      both);
  const struct {
    std::vector<const char*> words;
    const char* why;
  } wrong[] = {
      {{"get", "coordinators", "-w"}, "cannot be watched"},
      {{"get", "coordinators", "-l", "a=b"}, "have no labels"},
      {{"get", "coordinators", "--failed"}, "select jobs"},
      {{"get", "coordinators", "-o", "tsv"}, "-o tsv is the joblog"},
      {{"get", "coordinator/a:1", "b:1"}, "must be coordinator/NAME like the first"},
      {{"get", "coordinator", "coordinator/a:1"}, "must be the name of a coordinator"},
      {{"get", "coordinator/"}, "must be coordinator/NAME"},
      {{"describe", "coordinator", "a", "b"}, "needs a kind and one name"},
      {{"describe", "coordinator/"}, "needs a kind and one name"},
  };
  for (const auto& one : wrong)
    EXPECT_NE(complaint(one.words).find(one.why), std::string::npos) << one.why;
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"describe", "coordinator", "head2:7119"},
        std::vector<const char*>{"describe", "coordinator/head2:7119"}}) {
    const auto o = options<DescribeOptions>(words);
    EXPECT_TRUE(o.coordinator);
    EXPECT_EQ(o.name, "head2:7119");
  }
  EXPECT_FALSE(options<DescribeOptions>({"describe", "coordinator"}).coordinator) << "a name";
}

TEST(App, PromoteDemoteAndRemoveTakeACoordinator) {
  using What = LeadOptions::What;
  const auto promoted = options<LeadOptions>({"promote", "head2:7119"});
  EXPECT_EQ(promoted.what, What::promote);
  EXPECT_EQ(promoted.name, "head2:7119");
  EXPECT_EQ(options<LeadOptions>({"promote", "coordinator/head2:7119"}).name, "head2:7119");
  EXPECT_EQ(options<LeadOptions>({"demote"}).name, "") << "the one that leads";
  EXPECT_EQ(options<LeadOptions>({"demote", "head1:7119"}).what, What::demote);
  EXPECT_EQ(options<LeadOptions>({"remove", "coordinator/head2:7119"}).what, What::remove);
  EXPECT_NE(complaint({"promote"}), "");
  EXPECT_NE(complaint({"remove"}), "");
  EXPECT_NE(complaint({"remove", "coordinator/"}).find("must be a coordinator"), std::string::npos);
  EXPECT_NE(complaint({"remove", "job/sweep"}).find("must be a coordinator"), std::string::npos);
  EXPECT_NE(complaint({"promote", "a", "b"}).find("`b`"), std::string::npos);
}

TEST(App, ConnectTimeoutIsConfigurable) {
  EXPECT_EQ(options<GetOptions>({"get", "jobs"}).target.connect_timeout_ms, 5'000);
  EXPECT_EQ(
      options<GetOptions>({"get", "jobs", "--connect-timeout", "1m"}).target.connect_timeout_ms,
      60'000);
  // A request that waits only a moment for an answer does not wait for a coordinator.
  EXPECT_EQ(
      options<GetOptions>({"get", "jobs", "--request-timeout", "1s"}).target.connect_timeout_ms, 0);
  EXPECT_NE(complaint({"get", "jobs", "--connect-timeout", "soon"}), "");
}

TEST(App, DevTakesACommand) {
  const auto o = options<DevOptions>({"dev", "--nodes", "5", "--", "sh", "-c", "true"});
  EXPECT_EQ(o.nodes, 5u);
  EXPECT_EQ(o.slots, 4u);
  EXPECT_EQ(o.command, (std::vector<std::string>{"sh", "-c", "true"}));
  EXPECT_EQ(options<DevOptions>({"dev", "--data-dir", "/d/"}).data_dir, "/d");
  EXPECT_EQ(options<DevOptions>({"dev", "--api", "7000"}).api, "127.0.0.1:7000");
  EXPECT_EQ(options<DevOptions>({"dev"}).api, "127.0.0.1:0");
  EXPECT_NE(complaint({"dev", "--nodes", "0"}), "");
  EXPECT_NE(complaint({"dev", "--api", "here"}), "");
}

TEST(App, ExplainTakesAField) {
  const auto o = options<ExplainOptions>({"explain", "jobs.batch.spec.template"});
  EXPECT_EQ(o.kind, Kind::job);
  EXPECT_EQ(o.path, (std::vector<std::string>{"spec", "template"}));
  EXPECT_TRUE(options<ExplainOptions>({"explain", "node"}).path.empty());
  EXPECT_NE(complaint({"explain", "jobz.spec"}), "");
  EXPECT_NE(complaint({"explain", "job..spec"}), "");
}

TEST(App, TopShowsNodesOrJobs) {
  EXPECT_EQ(options<TopOptions>({"top"}).kind, Kind::node);
  EXPECT_EQ(options<TopOptions>({"top", "jobs", "-A"}).kind, Kind::job);
  EXPECT_NE(complaint({"top", "pods"}), "");
}

TEST(App, LogsTakesSelectorAndPrefix) {
  const auto o = options<LogsOptions>({"logs", "-f", "-l", "a=b", "--max-log-requests", "3"});
  EXPECT_EQ(o.selector, "a=b");
  EXPECT_EQ(o.live_max, 3);
  EXPECT_FALSE(o.prefix.has_value());
  EXPECT_EQ(options<LogsOptions>({"logs", "job/j", "--prefix"}).prefix, true);
  EXPECT_EQ(options<LogsOptions>({"logs", "job/j", "--prefix=false"}).prefix, false);
  EXPECT_NE(complaint({"logs"}).find("needs POD, job/J or -l SELECTOR"), std::string::npos);
  EXPECT_NE(complaint({"logs", "job/j", "-l", "a=b"}), "");
  EXPECT_NE(complaint({"logs", "-f", "job/j", "--failed"}), "");
}

TEST(App, TsvOutputIsOnlyForAttempts) {
  EXPECT_EQ(options<AttemptsOptions>({"get", "attempts", "job/j", "-o", "tsv"}).output,
            Output::tsv);
  EXPECT_NE(complaint({"get", "jobs", "-o", "tsv"}).find("muster get attempts"), std::string::npos);
  EXPECT_NE(complaint({"why", "job/j", "-o", "tsv"}).find("json"), std::string::npos)
      << "it lists what `why` takes";
  const Config configured(
      [](const char* name) { return std::string_view(name) == "MUSTER_OUTPUT" ? "tsv" : nullptr; });
  const auto form = [&configured](std::vector<const char*> words) {
    const Parsed p = parse(static_cast<int>(words.size()), words.data(), configured);
    return p.call && p.call->as<GetOptions>() ? p.call->as<GetOptions>()->output : Output::tsv;
  };
  EXPECT_EQ(form({"muster", "get", "jobs"}), Output::table) << "nobody gave -o";
  EXPECT_EQ(options<WhyOptions>({"why", "job/j", "-o", "yaml"}).output, Output::yaml);
}

TEST(App, UnknownVerbGetsSuggestion) {
  EXPECT_NE(complaint({"crate", "-f", "x"}).find("did you mean create?"), std::string::npos);
  EXPECT_NE(complaint({"get", "jobs", "--bogus"}).find("--bogus"), std::string::npos);
  EXPECT_NE(complaint({"get", "jobs", "--", "x"}), "");
}

TEST(App, HelpExitsWithZero) {
  for (const char* verb : {"run", "coordinator", "agent", "create", "get", "describe", "logs",
                           "wait", "delete", "version"}) {
    testing::internal::CaptureStdout();
    const Parsed p = parsed({verb, "--help"});
    const std::string help = testing::internal::GetCapturedStdout();
    EXPECT_FALSE(p.call.has_value());
    EXPECT_EQ(p.exit_code, 0);
    EXPECT_NE(help.find("Example"), std::string::npos) << verb;
  }
}

}  // namespace
}  // namespace muster::cli
