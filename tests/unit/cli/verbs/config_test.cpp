// Settings: which source wins, and the messages about wrong values.
#include "client/settings/config.hpp"

#include "cli/verbs/daemons/daemon_options.hpp"
#include "client/connect/discovery.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <unistd.h>

namespace muster::cli {
namespace {

// Environment variables, and files in an empty temporary home.
class ConfigTest : public testing::Test {
 protected:
  ConfigTest() : home(testing::TempDir() + "muster-config-XXXXXX") {
    EXPECT_NE(mkdtemp(home.data()), nullptr);
    std::filesystem::create_directories(home + "/.config/muster");
    user = home + "/.config/muster/config.yaml";
    system = home + "/system.yaml";
    variables = {{"HOME", home}, {"MUSTER_SYSTEM_CONFIG", system}};
  }
  ~ConfigTest() override { std::filesystem::remove_all(home); }

  Config config() {
    return Config([this](const char* name) {
      return variables.contains(name) ? variables[name].c_str() : nullptr;
    });
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  // The error message for this text in the user's file.
  std::string complaint(const std::string& text, Section section = Section::client) {
    write(user, text);
    auto settings = config().resolve(section, {});
    EXPECT_FALSE(settings.ok()) << text;
    return settings.ok() ? "" : settings.error().message;
  }

  std::string home, user, system;
  std::map<std::string, std::string> variables;
};

TEST_F(ConfigTest, FlagThenVariableThenUserThenSystemFileWins) {
  const auto api = [this](const Flags& flags = {}) {
    auto settings = config().resolve(Section::client, flags);
    EXPECT_TRUE(settings.ok());
    return (*settings)["api"].text() + " " + (*settings)["api"].from;
  };
  EXPECT_EQ(api(), "127.0.0.1:7117 default");
  write(system, "# the site's\n\napi: s:1\nnamespace: site\n");
  EXPECT_EQ(api(), "s:1 " + system + ":3");
  write(user, "api: u:1\n");
  EXPECT_EQ(api(), "u:1 " + user + ":1");
  EXPECT_EQ(config().resolve(Section::client, {})->text("namespace"), "site");
  variables["MUSTER_API"] = "v:1";
  EXPECT_EQ(api(), "v:1 MUSTER_API");
  EXPECT_EQ(api({{"api", {"f:1"}}}), "f:1 --api");
  variables["XDG_CONFIG_HOME"] = home + "/elsewhere";
  EXPECT_EQ(config().user_path(), home + "/elsewhere/muster/config.yaml");
}

TEST_F(ConfigTest, DaemonKeysAreReadFromItsSection) {
  write(user, "agent:\n  slots: 3\n  label: {disk: ssd, zone: a}\n  hollow: true\n");
  write(system, "coordinator: {data-dir: /d, node-grace: 5s}\nagent:\n  slots: 9\n  name: n\n");
  auto agent = agent_options(*config().resolve(Section::agent, {}));
  ASSERT_TRUE(agent.ok()) << agent.error().message;
  EXPECT_EQ(agent->options.slots, 3u);
  EXPECT_EQ(agent->options.name, "n");
  EXPECT_TRUE(agent->options.hollow);
  EXPECT_EQ(agent->options.labels,
            (std::map<std::string, std::string>{
                {"disk", "ssd"}, {"muster.dev/hollow", "true"}, {"zone", "a"}}));
  auto coordinator = coordinator_options(*config().resolve(Section::coordinator, {}));
  ASSERT_TRUE(coordinator.ok()) << coordinator.error().message;
  EXPECT_EQ(coordinator->options.node_grace_ms, 5'000);
  variables["MUSTER_COORDINATOR_NODE_GRACE"] = "7s";
  variables["MUSTER_AGENT_LABEL"] = "a=1,b=2";
  EXPECT_EQ(coordinator_options(*config().resolve(Section::coordinator, {}))->options.node_grace_ms,
            7'000);
  EXPECT_EQ(config().resolve(Section::agent, {})->operator[]("label").values,
            (std::vector<std::string>{"a=1", "b=2"}));
}

TEST_F(ConfigTest, NodeIpMustBeIpAddress) {
  auto options = [this](const std::string& text) {
    return agent_options(
        *config().resolve(Section::agent, {{"work-dir", {"/w"}}, {"node-ip", {text}}}));
  };
  EXPECT_EQ(options("10.0.0.12")->options.node_ip, "10.0.0.12");
  EXPECT_EQ(options("FD00:0::12")->options.node_ip, "fd00::12");
  EXPECT_EQ(options("")->options.node_ip, "");
  for (const char* bad : {"head", "10.0.0", "10.0.0.12:7118", "fe80::1%eth0", "[::1]"})
    EXPECT_NE(options(bad).error().message.find("must be an IP address"), std::string::npos) << bad;
}

TEST_F(ConfigTest, PeerPortsAreARangeOrAnyOrNone) {
  auto options = [this](const std::string& text) {
    return agent_options(
        *config().resolve(Section::agent, {{"work-dir", {"/w"}}, {"peer-ports", {text}}}));
  };
  using Ports = std::optional<agent::PortRange>;
  EXPECT_EQ(options("46000-46099")->options.peer_ports, Ports({46'000, 46'099}));
  EXPECT_EQ(options("46000")->options.peer_ports, Ports({46'000, 46'000}));
  EXPECT_EQ(options("any")->options.peer_ports, Ports(agent::PortRange{}));
  EXPECT_EQ(options("none")->options.peer_ports, std::nullopt);
  for (const char* bad : {"", "0", "0-9", "9-8", "1-65536", "a-b", "1-", "-1", "1-2-3"})
    EXPECT_NE(options(bad).error().message.find("must be ports, such as 46000-46099"),
              std::string::npos)
        << bad;
}

TEST_F(ConfigTest, AnAgentEndsWithItsAllocationUnlessToldOtherwise) {
  ::setenv("SLURM_JOB_END_TIME", "4102444800", 1);
  auto end = [this](const std::string& text) {
    std::map<std::string, std::vector<std::string>> flags{{"work-dir", {"/w"}}};
    if (!text.empty()) flags["until"] = {text};
    auto options = agent_options(*config().resolve(Section::agent, flags));
    EXPECT_TRUE(options.ok()) << options.error().message;
    return options->options.until_ms;
  };
  EXPECT_EQ(end(""), 4'102'444'800'000);
  EXPECT_EQ(end("none"), std::nullopt);
  ::unsetenv("SLURM_JOB_END_TIME");
  EXPECT_EQ(end(""), std::nullopt);
}

TEST_F(ConfigTest, AGivenFileIsBetweenVariablesAndTheUsersFile) {
  const std::string given = home + "/given.yaml";
  write(given, "coordinator: h:1\nslots: 5\nlabel: [disk=ssd]\nwork-dir: w\n");
  write(user, "agent: {slots: 3, log-level: warn}\n");
  auto settings = config().resolve(Section::agent, {{"name", {"n"}}}, given);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->text("coordinator"), "h:1");
  EXPECT_EQ((*settings)["slots"].from, given + ":2");
  EXPECT_EQ(settings->text("log-level"), "warn");
  EXPECT_EQ(agent_options(*settings)->options.labels.at("disk"), "ssd");
  variables["MUSTER_AGENT_SLOTS"] = "6";
  EXPECT_EQ(config().resolve(Section::agent, {}, given)->text("slots"), "6");
  EXPECT_NE(config().resolve(Section::agent, {}, home + "/none").error().message.find("none"),
            std::string::npos);
}

TEST_F(ConfigTest, AWrongFileNamesItsLine) {
  EXPECT_EQ(complaint("# mine\nnamspace: x\n"),
            user + ":2: unknown key namspace; did you mean namespace?");
  EXPECT_EQ(complaint("agent:\n  slotz: 1\n"),
            user + ":2: unknown key slotz of agent; did you mean slots?");
  EXPECT_EQ(complaint("data-dir: /d\n"),
            user + ":1: unknown key data-dir; the coordinator's is set below `coordinator:`");
  EXPECT_EQ(complaint("api: a:1\napi: b:2\n"), user + ":2: api is set twice, first in line 1");
  EXPECT_EQ(complaint("namespace: [a]\n"), user + ":1: namespace: must be a single value");
  EXPECT_EQ(complaint("api:\n"), user + ":1: api: has no value");
  EXPECT_EQ(complaint("agent: 3\n"), user + ":1: agent: must be a map of the agent's keys");
  EXPECT_EQ(complaint("\noutput: xml\n"),
            user + ":2: output: `xml`: must be one of table, wide, name, json, yaml, tsv");
  EXPECT_EQ(complaint("agent: {hollow: 1}\n", Section::agent),
            user + ":1: agent.hollow: must be true or false, not `1`");
  EXPECT_NE(complaint("- a\n").find("line 1, column 1: must be a map"), std::string::npos);
  EXPECT_NE(complaint("a: b\n  c: [\n").find("line 2"), std::string::npos);
}

TEST_F(ConfigTest, AWrongValueNamesItsPlace) {
  const auto complaint = [this](Section section, const Flags& flags) {
    auto settings = config().resolve(section, flags);
    if (!settings) return settings.error().message;
    if (section == Section::client) return target_of(*settings).error().message;
    return section == Section::agent ? agent_options(*settings).error().message
                                     : coordinator_options(*settings).error().message;
  };
  EXPECT_EQ(complaint(Section::coordinator, {}),
            "--data-dir D is required: the directory for the coordinator's state");
  variables["MUSTER_COORDINATOR_NODE_GRACE"] = "soon";
  EXPECT_TRUE(complaint(Section::coordinator, {{"data-dir", {"d"}}})
                  .starts_with("MUSTER_COORDINATOR_NODE_GRACE: "));
  EXPECT_TRUE(complaint(Section::coordinator, {{"data-dir", {"d"}}, {"node-grace", {"10ms"}}})
                  .starts_with("--node-grace: must be at least 1s"));
  write(user, "agent:\n  memory: -1\n");
  EXPECT_TRUE(complaint(Section::agent, {{"hollow", {"true"}}})
                  .starts_with(user + ":2: agent.memory: `-1`"));
  variables["MUSTER_API"] = "nowhere";
  EXPECT_TRUE(
      complaint(Section::client, {}).starts_with("MUSTER_API: `nowhere` is not an address"));
  EXPECT_TRUE(complaint(Section::client, {{"api", {"h:1"}}, {"request-timeout", {"0s"}}})
                  .starts_with("--request-timeout: "));
}

TEST_F(ConfigTest, AddressesAreAList) {
  const auto api = [this](const Flags& flags = {}) {
    const auto target = target_of(*config().resolve(Section::client, flags));
    return target ? target->api : target.error().message;
  };
  EXPECT_EQ(api({{"api", {"https://a:7443/,b:1,7200"}}}), "https://a:7443,b:1,127.0.0.1:7200");
  EXPECT_EQ(api({{"api", {"unix:/tmp/a,b/s"}}}), "unix:/tmp/a,b/s") << "one socket";
  write(user, "api:\n- https://a:7443\n- https://b:7443\n");
  EXPECT_EQ(api(), "https://a:7443,https://b:7443");
  write(user, "api: [a:1]\n");
  EXPECT_EQ(api(), "a:1");
  write(user, "api: a:1,b:2\n");
  EXPECT_EQ(api(), "a:1,b:2");
  EXPECT_EQ(complaint("api: {a: 1}\n"), user + ":1: api: must be a single value");
  write(user, "");
  variables["MUSTER_API"] = "a:1,b";
  EXPECT_TRUE(api().starts_with("MUSTER_API: `b` is not an address")) << api();
  EXPECT_EQ(api({{"api", {"a:1,"}}}), "--api: `a:1,`: an address is missing beside a comma");

  const auto agent = [this](const Flags& flags) {
    return agent_options(*config().resolve(Section::agent, flags));
  };
  const auto addresses =
      agent({{"hollow", {"true"}}, {"coordinator", {"a:7444,unix:/run/s,[::1]:1"}}});
  ASSERT_TRUE(addresses.ok()) << addresses.error().message;
  EXPECT_EQ(addresses->options.coordinators,
            (std::vector<std::string>{"a:7444", "unix:/run/s", "[::1]:1"}));
  for (const char* wrong : {"a:7444,b", "a:7444,", "https://a:1", "unix:", "a:0"}) {
    const auto refused = agent({{"hollow", {"true"}}, {"coordinator", {wrong}}});
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_TRUE(refused.error().message.starts_with("--coordinator: `")) << refused.error().message;
  }
  write(user, "agent: {coordinator: [a:1, b:2], hollow: true}\n");
  EXPECT_EQ(agent({})->options.coordinators, (std::vector<std::string>{"a:1", "b:2"}));
  variables["MUSTER_AGENT_COORDINATOR"] = "c:3,d:4";
  EXPECT_EQ(agent({})->options.coordinators, (std::vector<std::string>{"c:3", "d:4"}));
}

TEST_F(ConfigTest, ApiAddressIsParsed) {
  const auto target = [this](const char* api) {
    return target_of(*config().resolve(Section::client, {{"api", {api}}}));
  };
  EXPECT_EQ(target("http://b:2/")->api, "b:2");
  EXPECT_EQ(target("https://b:2/")->api, "https://b:2");
  EXPECT_EQ(target("7200")->api, "127.0.0.1:7200");
  EXPECT_TRUE(target("7200")->named);
  for (const char* wrong :
       {"host", "host:", "host:0", "host:99999", "https://h", "ftp://h:1", "a:1/path"})
    EXPECT_FALSE(target(wrong).ok()) << wrong;
  const auto by_default = target_of(*config().resolve(Section::client, {}));
  EXPECT_EQ(by_default->api, kDefaultApi);
  EXPECT_FALSE(by_default->named);
  write(user, "api: c:3\n");
  EXPECT_FALSE(target_of(*config().resolve(Section::client, {}))->named);
}

TEST(Keys, NamesAndVariablesAreUnique) {
  std::set<std::string> names, variables;
  for (const Section section : kSections) {
    for (const Key& key : keys_of(section)) {
      EXPECT_TRUE(names.insert(full_name(section, key)).second) << key.name;
      EXPECT_TRUE(variables.insert(variable_of(section, key)).second) << key.name;
      EXPECT_EQ(find_key(section, key.name), &key);
    }
  }
  EXPECT_TRUE(variables.contains("MUSTER_COORDINATOR_NODE_GRACE"));
}

// Each default exists twice: as the text of a key, and in the options of the daemons.
TEST(Keys, ShownDefaultsAreBuiltInDefaults) {
  auto c = coordinator_options(*Config().resolve(Section::coordinator, {{"data-dir", {"d"}}}));
  ASSERT_TRUE(c.ok()) << c.error().message;
  const coordinator::Options plain;
  EXPECT_EQ(c->options.api, plain.api);
  EXPECT_EQ(c->options.listen, plain.listen);
  EXPECT_EQ(c->options.backoff_base_ms, plain.backoff_base_ms);
  EXPECT_EQ(c->options.backoff_max_ms, plain.backoff_max_ms);
  EXPECT_EQ(c->options.node_grace_ms, plain.node_grace_ms);
  auto a = agent_options(*Config().resolve(Section::agent, {{"work-dir", {"w"}}}));
  ASSERT_TRUE(a.ok()) << a.error().message;
  EXPECT_EQ(a->options.log_keep_ms, agent::AgentOptions().log_keep_ms);
  EXPECT_EQ(a->options.log_max_bytes, agent::AgentOptions().log_max_bytes);
  EXPECT_EQ(a->options.slots, 0u);
  EXPECT_EQ(target_of(*Config().resolve(Section::client, {}))->request_timeout_ms,
            Target().request_timeout_ms);
}

}  // namespace
}  // namespace muster::cli
