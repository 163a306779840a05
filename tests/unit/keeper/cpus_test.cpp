// CPUs that processes have for themselves, in a real keeper.
#include "keeper/kernel/cpus.hpp"

#include "tests/unit/keeper/keeper_fixture.hpp"

namespace muster::agent {
namespace {

using namespace keeping;
using core::node::cpu_list_text;
using core::node::CpuList;

// Those that the tests may run on, which their keeper inherits.
CpuList usable() {
  CpuList cpus;
  for (const auto& cpu : keeper::own_cpus()) cpus.push_back(cpu.number);
  return cpus;
}

class KeeperCpus : public KeeperTest {
 protected:
  ~KeeperCpus() noexcept override = default;
  void SetUp() override {
    KeeperTest::SetUp();
    all_ = usable();
    if (all_.size() < 2) GTEST_SKIP() << "this machine has one CPU";
  }
  // Writes what it may run on and the variable to its output, and lasts until there is a file
  // `go`.
  SpawnOrder bound(uint32_t index, uint32_t cpus) {
    SpawnOrder what =
        shell(index, std::string("grep Cpus_allowed_list /proc/self/status | cut -f2; ") +
                         "echo ${MUSTER_CPUS-none}; " + "until test -f go; do sleep 0.01; done");
    what.cpus = cpus;
    return what;
  }
  // What it has written; empty: nothing comes.
  std::string shown(uint32_t index) {
    const fs::path out = root_ / ("out" + std::to_string(index));
    wait_for([&] { return std::ranges::count(read_file(out), '\n') == 2; });
    return read_file(out);
  }
  std::string start(uint32_t index, uint32_t cpus) {
    agent_->client->spawn({bound(index, cpus)});
    return shown(index);
  }
  static std::string words(const std::string& cpus, const std::string& variable) {
    return cpus + "\n" + variable + "\n";
  }
  std::string nth(size_t n) const { return std::to_string(all_[n]); }
  void let_go() { std::ofstream(root_ / "go").put('\n'); }

  CpuList all_;
};

TEST_P(KeeperCpus, AreGivenToOneProcessEach) {
  ASSERT_TRUE(connect().client->abilities().binds);
  const std::string one = start(0, 1), other = start(1, 1);
  EXPECT_NE(one, other);
  EXPECT_EQ(one, words(one.substr(0, one.find('\n')), one.substr(0, one.find('\n'))));
  EXPECT_EQ(start(2, 0), words(cpu_list_text(all_), "none")) << "it did not ask for any";
  const std::string both = start(3, static_cast<uint32_t>(all_.size()));
  EXPECT_EQ(both, words(cpu_list_text(all_), "none")) << "not as many are free, so it is not bound";
  EXPECT_NE(
      read_file(work_dir_ / "keeper/keeper.log")
          .find("not bound, " + std::to_string(all_.size()) + " CPUs of its own are not free"),
      std::string::npos);
  // The next agent learns who has what.
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 4; }));
  connect();
  ASSERT_EQ(agent_->inventory.living.size(), 4u);
  for (const auto& living : agent_->inventory.living) {
    const std::string text = cpu_list_text(living.cpus);
    EXPECT_EQ(words(text, text), living.key.pod.index < 2 ? shown(living.key.pod.index) : "\n\n");
  }
  let_go();
  EXPECT_TRUE(wait_for([this] { return agent_->ended.size() == 4; }));
  EXPECT_EQ(run(bound(4, static_cast<uint32_t>(all_.size()))).exit_code, 0);
  EXPECT_EQ(shown(4), words(cpu_list_text(all_), cpu_list_text(all_))) << "all are free again";
}

// A queued process starts on the thread that reaped the one before it, and gets its CPUs.
TEST_P(KeeperCpus, PassToTheNextInTheQueue) {
  connect();
  const auto count = static_cast<uint32_t>(all_.size());
  std::vector<SpawnOrder> orders;
  for (uint32_t i = 0; i < 50; ++i) {
    orders.push_back(bound(i, count));
    orders.back().queued = true;
  }
  let_go();
  agent_->client->set_room(1);
  agent_->client->spawn(orders);
  ASSERT_TRUE(wait_for([&] { return agent_->ended.size() == orders.size(); }));
  for (uint32_t i = 0; i < orders.size(); ++i)
    EXPECT_EQ(shown(i), words(cpu_list_text(all_), cpu_list_text(all_))) << i;
}

TEST_P(KeeperCpus, AreThoseOfItsSessions) {
  connect();
  const std::string one = start(0, 1);
  ASSERT_TRUE(wait_for([this] { return !agent_->started.empty(); }));
  EXPECT_EQ(cpu_list_text(agent_->started[0].cpus) + "\n", one.substr(0, one.find('\n') + 1));
  SpawnOrder session = bound(1, 0);
  session.key = {{7, 0, 0}, keeper::kSessionBit, 1};
  agent_->client->spawn({session});
  EXPECT_EQ(shown(1), one);
  EXPECT_NE(start(2, 1), one);
}

// What did not start holds nothing.
TEST_P(KeeperCpus, AreFreeAfterAFailedStart) {
  connect();
  const auto count = static_cast<uint32_t>(all_.size());
  SpawnOrder missing = order(0, {"/no/such/program"});
  missing.cpus = count;
  EXPECT_EQ(run(missing).exit_code, 127);
  SpawnOrder unwritable = bound(1, count);
  unwritable.stdout_path = (root_ / "missing/out").string();
  EXPECT_TRUE(run(unwritable).unstarted);
  let_go();
  EXPECT_EQ(run(bound(2, count)).exit_code, 0);
  EXPECT_EQ(shown(2), words(cpu_list_text(all_), cpu_list_text(all_)));
}

// Nor does what has left processes behind, once these are gone.
TEST_P(KeeperCpus, AreFreeAfterLeftovers) {
  connect();
  const auto count = static_cast<uint32_t>(all_.size());
  let_go();
  for (uint32_t i = 0; i < 10; ++i) {
    SpawnOrder leaves = shell(i, "setsid sleep 1000 & sleep 1000 & exit 0");
    leaves.cpus = count;
    EXPECT_EQ(run(leaves).exit_code, 0);
    EXPECT_EQ(run(bound(100 + i, count)).exit_code, 0);
    EXPECT_EQ(shown(100 + i), words(cpu_list_text(all_), cpu_list_text(all_)));
  }
}

// What the processes of a keeper that was killed had is free once they are gone.
TEST_P(KeeperCpus, AreFreeAfterTheKeeperDied) {
  connect();
  const auto count = static_cast<uint32_t>(all_.size());
  const std::string whole = words(cpu_list_text(all_), cpu_list_text(all_));
  EXPECT_EQ(start(0, count), whole);
  kill_keeper();
  connect();
  EXPECT_EQ(start(1, count), whole);
}

INSTANTIATE_TEST_SUITE_P(Leftovers, KeeperCpus, testing::Values("off", "on"), leftovers_by);

TEST(OwnCpus, AreReadFromSysfs) {
  const CpuList all = usable();
  ASSERT_FALSE(all.empty());
  std::string pattern = (fs::temp_directory_path() / "muster-sysfs-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path root = pattern, cpu = root / "cpu" / ("cpu" + std::to_string(all[0]));
  fs::create_directories(cpu / "topology");
  fs::create_directories(root / "node/node3");
  fs::create_directories(root / "node/nodelist");
  std::ofstream(cpu / "topology/thread_siblings_list") << all[0] << ",70000\n";
  std::ofstream(cpu / "topology/physical_package_id") << "2\n";
  std::ofstream(root / "node/node3/cpulist") << all[0] << "\n";
  EXPECT_EQ(keeper::own_cpus(root).front(), (core::node::Cpu{all[0], all[0], 2, 3}))
      << "with a list that makes no sense, each CPU is a core";
  std::ofstream(cpu / "topology/thread_siblings_list") << all[0] << "-" << all[0] + 1 << "\n";
  EXPECT_EQ(keeper::own_cpus(root).front(), (core::node::Cpu{all[0], all[0], 2, 3}));
  if (all.size() > 1) {
    EXPECT_EQ(keeper::own_cpus(root)[1], (core::node::Cpu{all[1], all[1], 0, 0}))
        << "nothing known";
  }
  fs::remove_all(root);
}

TEST(CpuMask, BindsTheCallingThread) {
  const CpuList all = usable();
  EXPECT_TRUE(keeper::CpuMask().bind());
  EXPECT_EQ(usable(), all);
  EXPECT_TRUE(keeper::CpuMask({all.back()}).bind());
  EXPECT_EQ(usable(), CpuList{all.back()});
  EXPECT_FALSE(keeper::CpuMask({core::node::kCpuNumberMax}).bind()) << "there is no such CPU";
  EXPECT_TRUE(keeper::CpuMask(all).bind());
}

}  // namespace
}  // namespace muster::agent
