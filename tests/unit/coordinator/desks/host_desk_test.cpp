// Which pods muster-rsh reaches, by which names and from where.
#include "coordinator/desks/host_desk.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

namespace muster::coordinator {
namespace {

std::string name_of_node(NodeId node) {
  return node == kNoNode ? "" : "c" + std::to_string(node);
}

core::HostListPtr hosts(std::vector<core::HostList::Host> list, uint32_t count = 3,
                        const std::string& name = "train") {
  static const auto object_of = [](const std::string& called) {
    auto object = std::make_shared<core::JobObject>();
    object->meta.name = called;
    object->meta.uid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";
    object->spec.completions = 3;
    object->spec.parallelism = 3;
    return object;
  };
  return std::make_shared<const core::HostList>(
      core::HostList{object_of(name), count, std::move(list), {}});
}

// Two pods on one node, one on another.
const std::vector<core::HostList::Host> kThree = {
    {{0, 0}, 1, true}, {{1, 0}, 1, true}, {{2, 1}, 2, false}};

TEST(HostDesk, ResolvesNames) {
  HostDesk desk;
  desk.set(7, hosts(kThree));
  const std::pair<const char*, int> expected[] = {
      {"train-0", 0},    {"train-2", 2},   {"train-2.example.com", 2},
      {"2", 2},          {"c2", 2},        {"c1", -1},  // two pods run there
      {"c3", -1},        {"3", -1},        {"train-3", -1},
      {"other-1", -1},   {"train-1x", -1}, {"train-", -1},
      {"train", -1},     {"", -1},         {"-1", -1},
      {"01", 1},         {"train-01", -1}, {"TRAIN-1", -1},
      {"1.example", -1}, {"train-1.", 1},  {"4294967297", -1}};
  for (const auto& [host, index] : expected) {
    const auto found = desk.resolve(7, host, name_of_node);
    EXPECT_EQ(found ? static_cast<int>(*found) : -1, index) << host;
  }
  EXPECT_FALSE(desk.resolve(8, "train-1", name_of_node)) << "of another job";
  EXPECT_EQ(desk.names(7), "train-0, train-1, train-2");
  EXPECT_EQ(desk.names(8), "");
  desk.set(7, hosts(kThree, 9));
  EXPECT_EQ(desk.names(7), "train-0, train-1, train-2, train-3 to train-8");
}

TEST(HostDesk, FindsNodesOfPodsAndJobs) {
  HostDesk desk;
  desk.set(7, hosts(kThree));
  EXPECT_TRUE(desk.is_on({7, 2, 1}, 2));
  EXPECT_FALSE(desk.is_on({7, 2, 0}, 2)) << "an earlier attempt";
  EXPECT_FALSE(desk.is_on({7, 2, 1}, 1)) << "another node";
  EXPECT_FALSE(desk.is_on({8, 2, 1}, 2)) << "another job";
  EXPECT_EQ(desk.nodes_of(7), (std::set<NodeId>{1, 2}));
  EXPECT_EQ(desk.jobs_on(2), std::set<JobId>{7});
  EXPECT_TRUE(desk.jobs_on(3).empty());
}

TEST(HostDesk, DistinguishesStateChangesFromMemberChanges) {
  using Change = HostDesk::Change;
  HostDesk desk;
  EXPECT_EQ(desk.set(7, hosts(kThree)), Change::members);
  EXPECT_EQ(desk.set(7, hosts(kThree)), Change::none);
  auto changed = kThree;
  changed[2].running = true;
  EXPECT_EQ(desk.set(7, hosts(changed)), Change::states);
  changed[2].pod.attempt = 2;
  EXPECT_EQ(desk.set(7, hosts(changed)), Change::members);
  changed[2].node = 3;
  EXPECT_EQ(desk.set(7, hosts(changed)), Change::members);
  EXPECT_EQ(desk.set(7, hosts(changed, 4)), Change::members);
  changed.pop_back();
  EXPECT_EQ(desk.set(7, hosts(changed, 4)), Change::members);
  EXPECT_EQ(desk.set(7, hosts({}, 0)), Change::members);
  EXPECT_EQ(desk.of(7), nullptr);
  EXPECT_TRUE(desk.jobs_on(1).empty());
}

TEST(HostDesk, WakesWaitersOfChangedJob) {
  auto io = kj::setupAsyncIo();
  HostDesk desk;
  auto of_job = desk.changes(7).eagerlyEvaluate(nullptr);
  auto of_other = desk.changes(8).eagerlyEvaluate(nullptr);
  desk.set(7, hosts(kThree));
  EXPECT_TRUE(of_job.poll(io.waitScope));
  EXPECT_FALSE(of_other.poll(io.waitScope));
  desk.connected();
  EXPECT_TRUE(of_other.poll(io.waitScope));
}

}  // namespace
}  // namespace muster::coordinator
