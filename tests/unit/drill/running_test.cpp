// A drill in a running cluster: the possible faults, the operator's commands, the rules of a
// partition, the mark in the witness directory, clocks of several machines, the plan.
#include "drill/process/command.hpp"
#include "drill/process/cut.hpp"
#include "drill/process/mark.hpp"
#include "drill/process/reach.hpp"
#include "drill/proof/witness.hpp"
#include "drill/survey.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace muster::cli::drill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DrillFaults, AreClassifiedByWhatTheyHit) {
  for (const Scenario& scenario : scenarios()) {
    for (const Fault fault : scenario.faults) {
      const std::string what = name(fault);
      const bool node = what.starts_with("agent") || what.starts_with("keeper") ||
                        what == "node-loss" || what == "partition";
      EXPECT_EQ(hits_node(fault), node) << what;
      EXPECT_EQ(only_local(fault) != nullptr, fault == Fault::clock_jump ||
                                                  fault == Fault::leader_cut ||
                                                  fault == Fault::store_loss)
          << what;
      EXPECT_EQ(hits_lead(fault),
                what == "takeover" || what.starts_with("leader-") || what == "store-loss")
          << what;
      EXPECT_TRUE(disrupts(fault) || !waits_for_loss(fault)) << what;
    }
  }
}

TEST(DrillHooks, NeedTheirPlaceholders) {
  const auto refused = [](const Hooks& hooks) {
    const Status s = check(hooks);
    return s ? "" : s.error().message;
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({"ssh {node} {}", "systemctl start muster-agent", "x {binary}", "y {backup}"}),
            "");
  EXPECT_THAT(refused({.on_node = "ssh c01 {}"}), HasSubstr("--on-node `ssh c01 {}`: {node} is"));
  EXPECT_THAT(refused({.on_node = "ssh {node}"}), HasSubstr("{} is missing"));
  EXPECT_THAT(refused({.switch_to = "true"}), HasSubstr("{binary} is missing"));
  EXPECT_THAT(refused({.restore = "true"}), HasSubstr("{backup} is missing"));
}

TEST(DrillHooks, AreFilledIn) {
  EXPECT_EQ(filled("ssh {node} sudo {}", "{node}", "c01"), "ssh c01 sudo {}");
  EXPECT_EQ(filled("{x}{x}", "{x}", "{x}y"), "{x}y{x}y") << "a value is not filled in again";
  for (const char* word : {"c01.example.org", "/opt/muster-0.5/bin/muster", "a_b:c=d,e@f+g"})
    EXPECT_TRUE(drill::plain(word)) << word;
  for (const char* word : {"", "a b", "a;b", "$(x)", "`x`", "a'b", "a\"b", "a\nb", "~", "a*", "é"})
    EXPECT_FALSE(drill::plain(word)) << word;
}

constexpr char kTcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "111 1 0\n"
    "   1: 0100007F:A2C4 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 "
    "222 1 0\n"
    "   2: 0000000000000000FFFF00000100000A:A2C5 0000000000000000FFFF00000200000A:1F90 02 "
    "00000000:00000000 00:00000000 00000000     0        0 333 1 0\n"
    "   3: 000080FE000000000000000001000000:0001 000080FE000000000000000002000000:0002 01 "
    "00000000:00000000 00:00000000 00000000     0        0 444 1 0\n"
    "not a row\n";

TEST(DrillCut, ReadsSocketsOfTheKernel) {
  EXPECT_THAT(tcp_sockets(kTcp),
              ElementsAre(TcpSocket{"127.0.0.1", "0.0.0.0", 8080, 0, 10, 111},
                          TcpSocket{"127.0.0.1", "127.0.0.1", 41668, 8080, 1, 222},
                          TcpSocket{"10.0.0.1", "10.0.0.2", 41669, 8080, 2, 333},
                          TcpSocket{"fe80::1", "fe80::2", 1, 2, 1, 444}));
}

TEST(DrillCut, RulesNameBothEndsAndSpareOthers) {
  const std::string rules = rules_of(
      "t", {{"10.0.0.7", "10.0.0.1", 7444, {40001, 40002}}, {"fe80::1", "fe80::2", 7444, {}}});
  EXPECT_THAT(rules, HasSubstr("table inet t {"));
  EXPECT_THAT(rules, HasSubstr("elements = { 40001, 40002 }"));
  EXPECT_THAT(rules, HasSubstr("ip saddr 10.0.0.7 ip daddr 10.0.0.1 tcp dport 7444 tcp sport != "
                               "@others0 counter drop"));
  EXPECT_THAT(rules, HasSubstr("ip saddr 10.0.0.1 ip daddr 10.0.0.7 tcp sport 7444 tcp dport != "
                               "@others0 counter drop"));
  EXPECT_THAT(rules, HasSubstr("ip6 saddr fe80::1 ip6 daddr fe80::2"));
  EXPECT_EQ(to_text(Link{"10.0.0.7", "10.0.0.1", 7444, {}}), "10.0.0.7 and 10.0.0.1:7444");
  EXPECT_EQ(to_text(Link{"fe80::1", "fe80::2", 7444, {}}), "fe80::1 and [fe80::2]:7444");
}

TEST(DrillCut, CountsDroppedPackets) {
  EXPECT_EQ(dropped_of(R"({"nftables": [{"metainfo": {}}, {"table": {"name": "t"}},
    {"rule": {"expr": [{"match": {}}, {"counter": {"packets": 3, "bytes": 180}}, {"drop": null}]}},
    {"rule": {"expr": [{"counter": {"packets": 4, "bytes": 240}}]}}]})"),
            7u);
  EXPECT_EQ(dropped_of("nft: no such table"), 0u);
}

TEST(DrillCommand, IsReadLineByLineAndReaped) {
  auto command = Command::start({"/bin/sh", "-c", "echo one; read x; echo got $x; cat >/dev/null"});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->line(20'000), "one");
  EXPECT_TRUE(command->write("two\n"));
  EXPECT_EQ(command->line(20'000), "got two");
  const auto rest = command->finish(20'000);
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  EXPECT_EQ(*rest, "");
  const auto failed = output_of({"/bin/sh", "-c", "echo why >&2; exit 3"}, "", 20'000);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "why (exit code 3)");
  EXPECT_FALSE(output_of({"/no/such"}, "", 20'000).ok());
  // A process that the command leaves running may keep the output open.
  EXPECT_TRUE(output_of({"/bin/sh", "-c", "sleep 30 & echo $! >&2; kill $!"}, "", 20'000).ok());
}

class DrillMark : public testing::Test {
 protected:
  DrillMark() {
    std::string path = testing::TempDir() + "muster-mark-XXXXXX";
    dir_ = mkdtemp(path.data());
  }
  ~DrillMark() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(DrillMark, NamesDrillThatDiedAndItsBinary) {
  {
    auto first = Mark::take(dir_);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_EQ(first->left().drill, "");
    EXPECT_EQ(Mark::take(dir_).error().code, Errc::conflict) << "one at a time";
    ASSERT_TRUE(first->write({"a1b2c3", "/usr/bin/muster"}).ok());
    ASSERT_TRUE(first->write({"a1b2c3", ""}).ok());
  }
  auto next = Mark::take(dir_);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->left().drill, "a1b2c3");
  EXPECT_EQ(next->left().binary, "");
  next->remove();
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

TEST_F(DrillMark, FollowsNoSymbolicLink) {
  std::filesystem::create_symlink(dir_ + "/elsewhere", dir_ + "/.muster-drill");
  EXPECT_FALSE(Mark::take(dir_).ok());
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/elsewhere"));
  EXPECT_FALSE(Mark::take(dir_ + "/no").ok());
}

TEST(DrillWitness, LinesOfOtherMachinesAreMovedToLocalClock) {
  const WitnessLine ours{false, {0, 0}, "u", "n0", "here", 5'000, 1'005'000, 1, 1, 0};
  const WitnessLine theirs{false, {1, 0}, "v", "n1", "there", 77, 1'004'000, 1, 1, 0};
  const Testimony testimony = on_one_clock({{theirs, ours}, 0}, "here", 1'000'000);
  ASSERT_EQ(testimony.lines.size(), 2u);
  EXPECT_EQ(testimony.lines[0].boot_ms, 4'000) << "it came first";
  EXPECT_EQ(testimony.lines[1], ours);
}

Survey survey_of(std::vector<Fault> faults) {
  Survey survey;
  survey.faults = std::move(faults);
  survey.nodes = {{"c01", "uid", true, {{"agent", {{"pid", 4711}, {"ticks", 12}}}}}};
  return survey;
}

std::string plan_of(const Survey& survey, const Hooks& hooks = {}) {
  std::string text;
  for (const std::string& line : plan_lines(survey, hooks, "/shared/drill")) text += line + "\n";
  return text;
}

TEST(DrillPlan, NamesPodsOfOthersAndEffectsOfFaults) {
  Survey survey = survey_of({Fault::agent_kill});
  EXPECT_THAT(plan_of(survey), HasSubstr("no pods of others run on these nodes\n"));
  survey.running = {{"physics", 3}, {"default", 1}};
  EXPECT_THAT(plan_of(survey), HasSubstr("4 pods of others on these nodes (default 1, physics 3) "
                                         "keep running"));
  EXPECT_THAT(plan_of(survey), HasSubstr("c01: agent pid 4711, started at tick 12; restarted by "
                                         "its supervisor, if it has one"));
  EXPECT_THAT(plan_of(survey, {.start = "x"}), HasSubstr("restarted by --start"));
  survey.faults = {Fault::keeper_kill};
  EXPECT_THAT(plan_of(survey), HasSubstr("may end or be replaced"));
  EXPECT_THAT(plan_of(survey), testing::Not(HasSubstr("API will be briefly unavailable")));
  survey.faults = {Fault::restore};
  EXPECT_THAT(plan_of(survey), HasSubstr("submits between backup and restore is lost"));
}

}  // namespace
}  // namespace muster::cli::drill
