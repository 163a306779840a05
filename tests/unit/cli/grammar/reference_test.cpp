// Help texts, manual pages, the table of keys and the completion scripts match the parser.
// MUSTER_GOLDEN_WRITE=1 rewrites the files.
#include "cli/grammar/reference.hpp"

#include "cli/grammar/app.hpp"
#include "cli/grammar/completion.hpp"
#include "client/terminal/exit_codes.hpp"
#include "tests/unit/checked_in.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

// Expects `part` between two lines of a file.
void expect_part(const std::string& name, const std::string& begin, const std::string& end,
                 const std::string& part) {
  const std::string text = read_checked_in(name);
  ASSERT_NE(text.find(begin + "\n"), std::string::npos) << name << " has no line " << begin;
  ASSERT_NE(text.find(end + "\n"), std::string::npos) << name << " has no line " << end;
  expect_checked_in(name, with_part(text, begin, end, part));
}

// The output and exit code of a command line: "$ muster ...", the text, "exit N".
std::string transcript(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"muster"};
  std::string text = "$ muster";
  for (const std::string& word : words) {
    argv.push_back(word.c_str());
    text += " " + (word.empty() ? "''" : word);
  }
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Parsed parsed = parse(static_cast<int>(argv.size()), argv.data());
  const std::string out = testing::internal::GetCapturedStdout();
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(parsed.call.has_value()) << text << ": these words are taken";
  return text + "\n" + out + err + "exit " + std::to_string(parsed.exit_code) + "\n";
}

TEST(Golden, HelpOfEachVerbIsAsCheckedIn) {
  expect_checked_in("tests/golden/help/muster.txt", transcript({"--help"}));
  for (const VerbWords& verb : grammar())
    expect_checked_in("tests/golden/help/" + verb.name + ".txt", transcript({verb.name, "--help"}));
}

TEST(Golden, UsageErrorsAreAsCheckedIn) {
  const std::vector<std::vector<std::string>> lines = {
      {"crate", "-f", "x"},
      {"--output", "json", "get", "jobs"},
      {"--api", "h:1", "agent", "--work-dir", "w"},
      {"get"},
      {"get", "podz"},
      {"get", "jobs", "--otput", "json"},
      {"get", "jobs", "-o", "jsn"},
      {"get", "jobs", "-o"},
      {"get", "jobs", "-o", "jsonpath={.items}"},
      {"get", "all", "-w"},
      {"get", "jobs", "--connect-timeout", "soon"},
      {"get", "jobs", "-x"},
      {"get", "jobs", "a", "-A"},
      {"get", "jobs", "a", "-l", "x=y"},
      {"get", "job/a", "pod/b"},
      {"get", "jobs", "--api", "nowhere"},
      {"get", "jobs", "--request-timeout", "soon"},
      {"get", "jobs", "--", "x"},
      {"run"},
      {"run", "a.yaml", "b.yaml"},
      {"run", "-n", "0", "--", "true"},
      {"run", "-n", "many", "--", "true"},
      {"run", "-n", "3"},
      {"run", "-n", "lab", "--", "true"},
      {"run", "-j", "2", "job.yaml"},
      {"run", "--", "true"},
      {"run", "run", "-n", "2", "--", "true"},
      {"run", "-n", "2", "-f", "job.yaml", "--", "true"},
      {"run", "--timeout", "soon", "job.yaml"},
      {"run", "-n", "2", "--each", "list", "--", "true"},
      {"run", "--each", "list", "--each-csv", "grid.csv", "--", "true"},
      {"run", "--each", "-", "--each", "-", "--", "true"},
      {"run", "--each", "list"},
      {"run", "-0", "-n", "1", "--", "true"},
      {"run", "--cpus", "many", "-n", "1", "--", "true"},
      {"run", "--mem", "4096", "-n", "1", "--", "true"},
      {"run", "--cpus", "2", "job.yaml"},
      {"run", "-o", "yaml", "job.yaml"},
      {"run", "-o", "name", "--dry-run", "job.yaml"},
      {"submit"},
      {"submit", "--array", "1-9"},
      {"submit", "--wait", "--dry-run", "job.yaml"},
      {"submit", "--timeout", "1m", "job.yaml"},
      {"create"},
      {"create", "--filee", "x"},
      {"delete"},
      {"delete", "sweep"},
      {"delete", "event", "e"},
      {"delete", "job", "a", "-f", "b.yaml"},
      {"delete", "nodes", "--all"},
      {"delete", "job"},
      {"describe", "job"},
      {"describe", "events", "e"},
      {"drain"},
      {"node", "claims"},
      {"drain", "a", "b"},
      {"drain", "a", "--deadline", "-1h"},
      {"scale", "job/a"},
      {"scale", "pod/a", "--completions", "3"},
      {"logs", "node/n"},
      {"logs", "p", "--index", "1"},
      {"logs", "job/j", "--attempt", "1"},
      {"logs", "job/j", "--index", "-1"},
      {"wait"},
      {"wait", "pod/p"},
      {"wait", "job/j", "--for=ready"},
      {"wait", "job/j", "--for=condition=Compleet"},
      {"coordinator"},
      {"coordinator", "--data-dir", "d", "--node-grace", "x"},
      {"coordinator", "--data-dir", "d", "--log-level", "loud"},
      {"coordinator", "--data-dir", "d", "--feature-gates", "JobSuccessPolicy=maybe"},
      {"coordinator", "--config", "/nowhere/c.yaml"},
      {"agent"},
      {"agent", "--work-dir", "w", "--label", "x"},
      {"agent", "--work-dir", "w", "--memory", "much"},
      {"agent", "--work-dir", "w", "--resource", "gpu=1"},
      {"agent", "--work-dir", "w", "--slots", "0"},
      {"config", "show"},
      {"explain", "jobz"},
      {"top", "pods"},
      {"dev", "--api", "here"},
      {"completion", "tcsh"},
  };
  std::string text = "# Words that are wrong, what is said about them, and the exit code.\n";
  for (const auto& words : lines) text += "\n" + transcript(words);
  expect_checked_in("tests/golden/cli/usage.txt", text);
}

TEST(Golden, ManualPagesAreAsCheckedIn) {
  const std::vector<VerbWords> verbs = grammar();
  expect_checked_in("docs/man/muster.1.scd", man_page(verbs));
  for (const VerbWords& verb : verbs) {
    if (verb.daemon)
      expect_part("docs/man/muster-" + verb.name + ".8.scd", "# OPTIONS", "; end of the options",
                  "\n" + man_flags(verb));
  }
  expect_part("docs/man/muster-config.5.scd", "# KEYS", "; end of the keys", "\n" + keys_man());
}

TEST(Golden, TableOfConfigurationKeysIsAsCheckedIn) {
  expect_part("docs/configuration.md", "<!-- keys -->", "<!-- end of the keys -->",
              keys_markdown());
}

TEST(Help, WordsOfAFlagAreThoseThatItTakes) {
  for (const VerbWords& verb : grammar()) {
    testing::internal::CaptureStdout();
    const char* const argv[] = {"muster", verb.name.c_str(), "--help"};
    (void)parse(3, argv);
    const std::string shown = testing::internal::GetCapturedStdout();
    for (const FlagWords& flag : verb.flags) {
      const std::string name = verb.name + " " + flag.names.front();
      EXPECT_NE(shown.find(flag.help), std::string::npos) << name << ": " << flag.help;
      EXPECT_FALSE(flag.help.ends_with(':')) << name;
      for (const std::string& word : flag.words)
        EXPECT_NE(flag.help.find(word), std::string::npos) << name << " " << word;
    }
  }
}

TEST(Help, AllArgumentsAreShown) {
  for (const VerbWords& verb : grammar())
    if (verb.name == "journal") {
      EXPECT_EQ(verb.what, "inspect|export DIR");
      EXPECT_EQ(verb.what_words, (std::vector<std::string>{"inspect", "export"}));
    }
}

TEST(Completion, EveryFlagIsOffered) {
  const std::vector<VerbWords> verbs = grammar();
  const std::string bash = bash_completion(verbs), zsh = zsh_completion(verbs),
                    fish = fish_completion(verbs);
  for (const VerbWords& verb : verbs) {
    for (const FlagWords& flag : verb.flags) {
      for (const std::string& name : flag.names) {
        EXPECT_NE(bash.find(name), std::string::npos) << verb.name << " " << name;
        EXPECT_NE(zsh.find(name), std::string::npos) << verb.name << " " << name;
        const std::string word = name.substr(name.rfind('-', 1) + 1);
        EXPECT_NE(fish.find((name.starts_with("--") ? "-l " : "-s ") + word), std::string::npos)
            << verb.name << " " << name;
      }
    }
  }
}

TEST(Completion, EveryKindIsOffered) {
  const std::string kinds =
      "jobs pods nodes events configmaps namespaces cronjobs queues priorityclasses all attempts";
  for (const std::string& script :
       {bash_completion(grammar()), zsh_completion(grammar()), fish_completion(grammar())})
    EXPECT_NE(script.find(kinds), std::string::npos) << script.substr(0, 40);
}

TEST(Completion, ArgumentTypeSelectsWhatIsCompleted) {
  EXPECT_TRUE(completes("job/J...", {}).jobs);
  EXPECT_TRUE(completes("POD | job/J", {}).pods);
  EXPECT_TRUE(completes("KIND [NAME...]", {}).kinds);
  EXPECT_TRUE(completes("JOB.yaml | -- CMD ARG...", {}).files);
  EXPECT_TRUE(completes("NODE...", {}).nodes);
  EXPECT_TRUE(completes("D", {}).folders);
  EXPECT_EQ(completes("FORM", {"a", "b"}).words.size(), 2u);
  EXPECT_FALSE(completes("N", {}).jobs);
}

}  // namespace
}  // namespace muster::cli
