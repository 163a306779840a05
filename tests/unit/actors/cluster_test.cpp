// The ClusterActor under CAF's test scheduler: registration, leases, changes to nodes, slots.
#include "actors/cluster_actor.hpp"
#include "actors/journal_actor.hpp"
#include "storage/journal/memory_journal.hpp"
#include "tests/unit/actors/test_gate.hpp"
#include "tests/unit/actors/virtual_time.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

namespace muster::actors {

namespace {

using core::NodeInfo;

constexpr Millis kGraceMs = 16'000;
constexpr const char* kKey = "the cluster's key";

// What the registry and the jobs received.
struct Heard {
  std::vector<NodeId> ready;
  std::vector<std::pair<NodeId, core::EndCause>> lost;
  std::map<JobId, std::map<NodeId, uint32_t>> granted, preempted;
  std::set<JobId> keepers;  // jobs that may reuse freed slots
  std::vector<std::string> order;
  std::map<JobId, std::set<PodKey>> known;  // from the last Reconcile
};

struct Links final : AgentLink {
  void launch(NodeId, uint64_t, std::vector<PodId>, core::JobObjectPtr) override {}
  void kill(NodeId, PodId, Millis) override {}
  void ask(NodeId, JobId, uint64_t) override {}
  void drop(NodeId node) override { dropped.push_back(node); }
  std::vector<NodeId> dropped;
};

registry_actor::behavior_type registry(registry_actor::pointer, Heard* heard) {
  return {
      [](const CreateJob&) {},
      [](const DeleteJob&) {},
      [](const AskJob&) {},
      [heard](const Report& m) {
        for (const auto& [job, part] : m.jobs)
          for (const auto& end : part.ends)
            heard->order.push_back("end j" + std::to_string(job) + "/" + to_string(end.pod) +
                                   " on n" + std::to_string(part.node) + " of n" +
                                   std::to_string(m.node));
        TestGate(journal_actor{}, SealedLink(), nullptr).gate.after([&m](const Durable& durable) {
          m.done(durable, {});
        });
      },
      [heard](const Reconcile& m) {
        heard->order.push_back("reconcile n" + std::to_string(m.node));
        heard->known = m.known;
        TestGate(journal_actor{}, SealedLink(), nullptr).gate.after([&m](const Durable& durable) {
          m.answered(durable, {PodId{7, 1, 0}});
        });
      },
      [heard](const NodeReadyNow& m) { heard->ready.push_back(m.node); },
      [heard](const NodeIsLost& m) {
        heard->lost.emplace_back(m.node, m.cause);
        heard->order.push_back("lost n" + std::to_string(m.node));
      },
      [](const JobHears&) {},
      [](const JobIsOver&) {},
      [](const JobIsHidden&) {},
      [](const JobHasAdvanced&) {},
      [](const JobIsResized&) {},
      [](const DependentKnows&) {},
      [](const durable_atom&, uint64_t, uint64_t) {},
      [](const sync_atom&, uint64_t) {},
      [](const wake_atom&, uint64_t) {},
      [](const stop_atom&) {},
  };
}

job_actor::behavior_type pretended_job(job_actor::pointer, Heard* heard, JobId id) {
  return {
      [](const JobReport&) {},
      [](const JobDelete&) {},
      [](const JobAsk&) {},
      [heard, id](const Preempt& m) {
        for (auto [node, count] : m.slots) heard->preempted[id][node] += count;
      },
      [](const LeaveNodes&) {},
      [](const HasNowhere&) {},
      [heard, id](const ReturnSlots&) { heard->keepers.erase(id); },
      [](const JobReconcile&) {},
      [](const NodeReadyNow&) {},
      [](const NodeIsLost&) {},
      [heard, id](const Granted& m) {
        for (auto [node, count] : m.slots) heard->granted[id][node] += count;
        m.keep ? void(heard->keepers.insert(id)) : void(heard->keepers.erase(id));
      },
      [](const JobHears&) {},
      [](const HasDependents&) {},
      [](const sync_atom&) {},
      [](const durable_atom&, uint64_t, uint64_t) {},
      [](const wake_atom&, uint64_t) {},
      [](const stop_atom&) {},
  };
}

class ClusterTest : public testing::Test {
 protected:
  explicit ClusterTest(const std::vector<core::EpochEntry>& line = {{1, 1, 1}})
      : system_(config_),
        scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
        registry_(system_.spawn(registry, &heard_)) {
    journal_ = spawn_journal(system_, disk_,
                             {.show = [this](core::Committed batch) { seen(batch.nodes); },
                              .failed = [](const std::string& why) { FAIL() << why; }});
    ClusterOptions options;
    options.settings.cluster_id = "test";
    options.settings.line = core::EpochLine(line);
    options.settings.node_grace_ms = kGraceMs;
    options.last_commit = [this] { return disk_.last_commit(); };
    options.show = [this](const core::NodeHealth& health) {
      if (shown_.contains(health.id)) core::set_health(shown_[health.id], health);
    };
    options.settings.cluster_key = kKey;
    options.next_job = std::make_shared<std::atomic<JobId>>(8);
    options.outdated = [this](const std::string& why) { outdated_.push_back(why); };
    cluster_ = spawn_cluster(
        system_, journal_, [this] { return registry_; }, SealedLink(links_),
        [this] { return now_ms_; }, options, {}, {});
    run();
  }
  ~ClusterTest() override {
    EXPECT_EQ(outdated_, stops_);
    caf::anon_send(cluster_, stop_atom_v);
    caf::anon_send(journal_, stop_atom_v);
    run();
    caf::anon_send_exit(registry_, caf::exit_reason::user_shutdown);
    for (auto& [id, actor] : jobs_) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    run();
  }

  // A row with unknown health keeps the known one, as in the read model.
  void seen(const std::vector<NodeInfo>& nodes) {
    for (NodeInfo node : nodes) {
      auto it = shown_.find(node.id);
      if (it != shown_.end() && node.health == NodeInfo::Health::unknown)
        node.health = it->second.health;
      shown_[node.id] = node;
    }
  }

  void run() {
    while (scheduler_.run() > 0) {
    }
  }
  void pass(Millis ms, const std::vector<NodeId>& alive) {
    for (; ms > 0; ms -= 500) {
      for (NodeId node : alive) caf::anon_send(cluster_, Heartbeat{node, link_of_[node]});
      now_ms_ += 500;
      scheduler_.advance_time(std::chrono::milliseconds(500));
      run();
    }
  }
  HelloAnswer hello(const std::string& name, const std::string& dir, const std::string& boot,
                    uint32_t slots = 2, const std::function<void(AgentHello&)>& edit = nullptr) {
    RegisterAgent ask;
    ask.hello.link = ++last_link_;
    ask.hello.node = name;
    ask.hello.work_dir_id = dir;
    ask.hello.boot_id = boot;
    ask.hello.slots = slots;
    ask.hello.resources = {{"nvidia.com/gpu", 2}};
    if (edit) edit(ask.hello);
    std::optional<HelloAnswer> answer;
    ask.done = [&answer](HelloAnswer a) { answer = std::move(a); };
    caf::anon_send(cluster_, ask);
    run();
    EXPECT_TRUE(answer.has_value() || !outdated_.empty());
    return answer.value_or(HelloAnswer{});
  }
  // Registers a node and brings its link up.
  NodeId join(const std::string& name, const std::string& dir, const std::string& boot = "b1",
              uint32_t slots = 2) {
    HelloAnswer answer = hello(name, dir, boot, slots);
    EXPECT_EQ(answer.kind, HelloAnswer::Kind::welcome) << answer.message;
    EXPECT_EQ(answer.end, (std::vector<PodId>{{7, 1, 0}})) << "what it is to end first";
    link_of_[answer.node] = last_link_;
    caf::anon_send(cluster_, LinkUp{answer.node, last_link_});
    run();
    return answer.node;
  }
  void want(JobId id, uint32_t pending, uint64_t received, core::JobObjectPtr object = nullptr) {
    if (!jobs_.contains(id)) jobs_[id] = system_.spawn(pretended_job, &heard_, id);
    if (object) objects_[id] = std::move(object);
    if (!objects_[id]) objects_[id] = std::make_shared<core::JobObject>();
    caf::anon_send(cluster_, Want{id, pending, received, objects_[id]}, jobs_[id]);
    run();
  }
  Status change(const std::string& name, const core::NodeSpec& seen, const core::NodeSpec& spec) {
    std::optional<Status> answer;
    caf::anon_send(cluster_, ChangeNode{name, seen, spec, [&answer](Status s) { answer = s; }});
    run();
    EXPECT_TRUE(answer.has_value());
    return *answer;
  }
  Status remove(const std::string& name) {
    std::optional<Status> answer;
    caf::anon_send(cluster_, DeleteNode{name, [&answer](Status s) { answer = s; }});
    run();
    EXPECT_TRUE(answer.has_value());
    return *answer;
  }
  static core::JobObjectPtr with_priority(int32_t priority) {
    auto object = std::make_shared<core::JobObject>();
    object->spec.pod.priority = priority;
    return object;
  }

  VirtualTime config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  storage::MemoryJournal disk_;
  Links links_;
  Heard heard_;
  registry_actor registry_;
  journal_actor journal_;
  cluster_actor cluster_;
  std::map<JobId, job_actor> jobs_;
  std::map<JobId, core::JobObjectPtr> objects_;
  std::map<NodeId, NodeInfo> shown_;
  std::map<NodeId, uint64_t> link_of_;
  uint64_t last_link_ = 0;
  std::vector<std::string> outdated_, stops_;  // actual and expected reasons to stop
  Millis now_ms_ = 1'700'000'000'000;
};

TEST_F(ClusterTest, ANodeGetsGrantsOnceItsLinkIsUp) {
  want(1, 3, 0);
  HelloAnswer answer = hello("a", "d1", "b1");
  EXPECT_TRUE(heard_.granted.empty());
  caf::anon_send(cluster_, LinkUp{answer.node, last_link_});
  run();
  EXPECT_EQ(heard_.granted[1][answer.node], 2u);
  EXPECT_EQ(shown_[answer.node].resources.at("nvidia.com/gpu"), 2);
  caf::anon_send(cluster_, Freed{1, {{answer.node, 1}}});
  run();
  EXPECT_EQ(heard_.granted[1][answer.node], 3u);
}

TEST_F(ClusterTest, NoNodeIsLostWhileNoNodeResponds) {
  NodeId a = join("a", "d1"), b = join("b", "d2");
  pass(3 * kGraceMs, {});
  EXPECT_TRUE(heard_.lost.empty());
  pass(kGraceMs / 2, {b});
  EXPECT_EQ(heard_.lost,
            (std::vector<std::pair<NodeId, core::EndCause>>{{a, core::EndCause::node_lost}}));
  EXPECT_EQ(links_.dropped, std::vector<NodeId>{a});
}

TEST_F(ClusterTest, P13ANodeInTroubleGetsNoPodsAndIsNotLost) {
  NodeId a = join("a", "d1"), b = join("b", "d2");
  core::NodeTrouble trouble{"KeeperNotResponding", "the keeper has not responded for 5 s"};
  for (Millis ms = 0; ms < 2 * kGraceMs; ms += 500) {
    caf::anon_send(cluster_, Heartbeat{a, link_of_[a], trouble});
    pass(500, {b});
  }
  EXPECT_TRUE(heard_.lost.empty()) << "it responds";
  EXPECT_EQ(shown_[a].health, NodeInfo::Health::ready);
  EXPECT_EQ(shown_[a].trouble, trouble);
  EXPECT_FALSE(core::is_ready(shown_[a]));
  want(1, 9, 0);
  EXPECT_EQ(heard_.granted[1], (std::map<NodeId, uint32_t>{{b, 2}}));
  EXPECT_EQ(join("a", "d1"), a) << "its agent has registered again";
  EXPECT_EQ(heard_.granted[1].count(a), 0u);
  caf::anon_send(cluster_, Heartbeat{a, link_of_[a]});
  run();
  EXPECT_TRUE(core::is_ready(shown_[a]));
  EXPECT_EQ(heard_.granted[1][a], 2u);
}

TEST_F(ClusterTest, CordonedNodeGetsNoGrantsAndStaysCordonedAfterReboot) {
  NodeId a = join("a", "d1");
  core::NodeSpec cordoned;
  cordoned.unschedulable = true;
  EXPECT_TRUE(change("a", {}, cordoned).ok());
  EXPECT_TRUE(shown_[a].spec.unschedulable);
  Status again = change("a", {}, cordoned);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::conflict);
  Status other = change("b", {}, cordoned);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Errc::not_found);
  want(1, 5, 0);
  EXPECT_TRUE(heard_.granted.empty());
  NodeId next = join("a", "d1", "b2");
  EXPECT_NE(next, a);
  EXPECT_TRUE(shown_[next].spec.unschedulable);
  EXPECT_TRUE(heard_.granted.empty());
  EXPECT_TRUE(change("a", cordoned, {}).ok());
  EXPECT_EQ(heard_.granted[1][next], 2u);
}

// Ends in the spool of a node survive its reboot.
TEST_F(ClusterTest, EndsInSpoolAreReportedBeforeNodeIsLostAfterReboot) {
  const NodeId a = join("a", "d1");
  const auto with_end = [](AgentHello& hello) {
    hello.cluster_id = "test";
    core::PodsReported::Ended end;
    end.pod = {3, 0};
    hello.ended = {{3, 3, 0}};
    hello.ends[3].ends = {end};
  };
  heard_.order.clear();
  hello("a", "d1", "b1", 2, with_end);
  EXPECT_EQ(heard_.order, (std::vector<std::string>{"reconcile n1"})) << "its session reports it";
  heard_.order.clear();
  hello("a", "d1", "b2", 2, with_end);
  EXPECT_EQ(heard_.order,
            (std::vector<std::string>{"end j3/3#0 on n1 of n1", "lost n1", "reconcile n2"}));
  EXPECT_EQ(a, 1u);
  pass(60'000, {});
  heard_.order.clear();
  hello("a", "another dir", "b3", 2, with_end);
  EXPECT_EQ(heard_.order, (std::vector<std::string>{"lost n2", "reconcile n3"}))
      << "no word for another's pods";
}

TEST_F(ClusterTest, NodeChangeBeingWrittenIsHiddenAndSurvivesReboot) {
  NodeId a = join("a", "d1");
  core::NodeSpec cordoned;
  cordoned.unschedulable = true;
  bool changed = false;
  caf::anon_send(cluster_, ChangeNode{"a", {}, cordoned, [&changed](Status s) {
                                        EXPECT_TRUE(s.ok());
                                        changed = true;
                                      }});
  caf::anon_send(cluster_, LinkUp{a, link_of_[a]});  // shows the node before the change is on disk
  NodeId next = join("a", "d1", "b2");
  EXPECT_TRUE(changed);
  EXPECT_TRUE(shown_[next].spec.unschedulable);
}

TEST_F(ClusterTest, ADeletedNodesPodsAreLostAndItsNameIsFree) {
  NodeId a = join("a", "d1");
  core::NodeSpec cordoned;
  cordoned.unschedulable = true;
  EXPECT_TRUE(change("a", {}, cordoned).ok());
  EXPECT_TRUE(remove("a").ok());
  EXPECT_EQ(heard_.lost,
            (std::vector<std::pair<NodeId, core::EndCause>>{{a, core::EndCause::node_deleted}}));
  EXPECT_EQ(links_.dropped, std::vector<NodeId>{a});
  EXPECT_TRUE(shown_[a].deleted);
  Status again = remove("a");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::not_found);
  // Late messages from the old link change nothing.
  caf::anon_send(cluster_, Heartbeat{a, link_of_[a]});
  caf::anon_send(cluster_, LinkUp{a, link_of_[a]});
  want(1, 9, 0);
  EXPECT_TRUE(heard_.granted.empty());
  // Its agent, or another one, may register at once.
  NodeId next = join("a", "another dir");
  EXPECT_NE(next, a);
  EXPECT_FALSE(shown_[next].spec.unschedulable);
  EXPECT_EQ(heard_.granted[1][next], 2u);
  EXPECT_EQ(heard_.order, (std::vector<std::string>{"reconcile n1", "lost n1", "reconcile n2"}));
}

TEST_F(ClusterTest, NameOfLiveNodeIsRefusedToAnotherWorkDir) {
  NodeId a = join("a", "d1");
  EXPECT_EQ(hello("a", "d2", "b1").kind, HelloAnswer::Kind::name_taken);
  EXPECT_EQ(join("a", "d1"), a) << "the same work-dir and boot is the same incarnation";
}

TEST_F(ClusterTest, HigherPriorityPreemptsLowerOneOnce) {
  NodeId a = join("a", "d1");
  want(1, 4, 0);
  EXPECT_EQ(heard_.granted[1][a], 2u);
  want(1, 2, 2);
  want(2, 1, 0, with_priority(10));
  EXPECT_EQ(heard_.preempted[1][a], 1u);
  pass(2'000, {a});
  EXPECT_EQ(heard_.preempted[1][a], 1u);
  caf::anon_send(cluster_, Freed{1, {{a, 1}}});
  want(1, 3, 2);
  EXPECT_EQ(heard_.granted[2][a], 1u);
  EXPECT_EQ(heard_.granted[1][a], 2u);
}

TEST_F(ClusterTest, PreemptionResumesAfterPauseWithoutOtherEvents) {
  NodeId a = join("a", "d1");
  want(1, 2, 0);
  want(1, 0, 2);
  want(2, 1, 0, with_priority(10));
  want(3, 1, 0, with_priority(5));  // within the pause that follows a preemption
  EXPECT_EQ(heard_.preempted[1][a], 1u);
  pass(500, {a});
  EXPECT_EQ(heard_.preempted[1][a], 2u);
}

class P11Restored : public ClusterTest {
 protected:
  P11Restored() : ClusterTest({{1, 1, 1}, {100, 10, 50, true}, {101, 11, 51}}) {}
  HelloAnswer heard(uint64_t epoch, uint64_t nonce, std::vector<PodId> running) {
    return hello("a", "d1", "b1", 2, [&](AgentHello& hello) {
      hello.cluster_id = "test";
      hello.cluster_key = kKey;
      hello.highest_epoch = epoch;
      hello.epoch_nonce = nonce;
      hello.running = std::move(running);
    });
  }
};

TEST_F(P11Restored, PodsStartedAfterBackupAreKeptAndNotReconciledAgain) {
  const PodId stranger{7, 1, 0};  // the registry makes every agent end it
  HelloAnswer first = heard(2, 99, {stranger, {7, 2, 0}});
  EXPECT_EQ(first.kind, HelloAnswer::Kind::welcome);
  EXPECT_TRUE(first.end.empty()) << "it was begun after the backup: nobody may end it";
  EXPECT_EQ(shown_[first.node].strangers, std::vector<PodId>{stranger});
  EXPECT_TRUE(heard_.known[7].contains(stranger.key()));

  HelloAnswer again = heard(101, 11, {stranger, {7, 2, 0}});
  EXPECT_EQ(again.node, first.node);
  EXPECT_EQ(heard_.known[7], (std::set<PodKey>{{2, 0}})) << "no job is asked about it again";
  EXPECT_EQ(shown_[first.node].strangers, std::vector<PodId>{stranger});

  heard(101, 11, {{7, 2, 0}});
  EXPECT_TRUE(shown_[first.node].strangers.empty()) << "it has ended";
}

TEST_F(P11Restored, AgentOfAnotherHistoryStopsRestoredCoordinator) {
  heard(101, 12, {});
  ASSERT_EQ(outdated_.size(), 1u);
  EXPECT_NE(outdated_[0].find("has seen epoch 101"), std::string::npos);
  stops_ = outdated_;
}

class P02StrangersHello : public ClusterTest {};

TEST_F(P02StrangersHello, WithPodsOfNoClusterIsRefused) {
  for (const char* cluster : {"", "another"})
    for (JobId job : {JobId{7}, JobId{8}, JobId{1} << 63}) {
      HelloAnswer answer = hello("a", "d1", "b1", 2, [&](AgentHello& hello) {
        hello.cluster_id = cluster;
        hello.running = {{job, 0, 0}};
      });
      EXPECT_EQ(answer.kind, HelloAnswer::Kind::other_cluster) << cluster << job;
      EXPECT_TRUE(answer.end.empty()) << "its job ids mean other jobs";
    }
  EXPECT_TRUE(shown_.empty());
}

TEST_F(P02StrangersHello, AgentWithClusterIdButWrongKeyIsRefused) {
  join("a", "d1");
  for (int what = 0; what < 4; ++what) {
    HelloAnswer answer = hello("b", "d2", "b1", 2, [&](AgentHello& hello) {
      hello.cluster_id = "test";
      if (what == 0) hello.running = {{8, 0, 0}};
      if (what == 1) hello.ended = {{9, 0, 0}};
      if (what == 2) hello.highest_epoch = 2;
      if (what == 3) hello.highest_commit = 1'000;
      hello.cluster_key = "not the cluster's";
    });
    EXPECT_EQ(answer.kind, HelloAnswer::Kind::other_cluster) << what;
  }
}

TEST_F(P02StrangersHello, KnownNodeOrClusterKeyHolderStopsOldCopyOfDataDir) {
  // A node that the copy knows...
  hello("a", "d1", "b1", 2, [](AgentHello& hello) { hello.secret = "s1"; });
  hello("a", "d1", "b1", 2, [](AgentHello& hello) {
    hello.cluster_id = "test";
    hello.secret = "s1";
    hello.running = {{8, 0, 0}};
  });
  stops_ = {"node a has pods of job j8, but this data-dir never assigned that id"};
  EXPECT_EQ(outdated_, stops_);
  // ...and one that joined after the copy was made.
  hello("b", "d2", "b1", 2, [](AgentHello& hello) {
    hello.cluster_id = "test";
    hello.cluster_key = kKey;
    hello.running = {{9, 0, 0}};
  });
  stops_.push_back("node b has pods of job j9, but this data-dir never assigned that id");
  EXPECT_EQ(outdated_, stops_);
}

// The history in this test is epoch 1, with the random number 1, up to about commit 1.
TEST_F(P02StrangersHello, RemoteAgentStopsCoordinatorOnlyWithUnknownSealedHistory) {
  join("a", "d1");
  const core::KnownHistory none{}, said{1, 1, 1}, later{2, 9, 40}, more{1, 1, 1'000},
      other{1, 2, 1};
  struct Row {
    const char* what;
    core::KnownHistory claimed;
    std::optional<core::KnownHistory> sealed;
    JobId job;  // the job of a pod that it runs
    bool stops;
  };
  const Row rows[] = {
      {"a later epoch, on its word", later, std::nullopt, 0, false},
      {"more commits, on its word", more, std::nullopt, 0, false},
      {"another coordinator's epoch, on its word", other, std::nullopt, 0, false},
      {"a job id that was never issued", said, std::nullopt, 8, false},
      {"a later epoch, by an old seal", later, said, 0, false},
      {"more commits, by an old seal", more, said, 0, false},
      {"a job id that was never issued, by an old seal", said, said, 8, false},
      {"a later epoch, by the seal of nothing", later, none, 0, false},
      {"a later epoch", later, later, 0, true},
      {"more commits", more, more, 0, true},
      {"another coordinator's epoch", other, other, 0, true},
      {"more than is sealed", {2, 9, 41}, later, 0, true},
      {"a job id that was never issued", said, more, 8, true},
  };
  for (const Row& row : rows) {
    outdated_.clear();
    HelloAnswer answer = hello("b", "d2", "b1", 2, [&](AgentHello& hello) {
      hello.cluster_id = "test";
      hello.cluster_key = kKey;  // any node has it
      hello.must_prove = true;
      hello.highest_epoch = row.claimed.epoch;
      hello.epoch_nonce = row.claimed.nonce;
      hello.highest_commit = row.claimed.commit;
      hello.sealed = row.sealed;
      if (row.job != 0) hello.running = {{row.job, 0, 0}};
    });
    EXPECT_EQ(outdated_.size(), row.stops ? 1u : 0u) << row.what;
    if (row.stops) continue;
    EXPECT_EQ(answer.kind, HelloAnswer::Kind::other_cluster) << row.what;
    EXPECT_NE(answer.message.find("no seal"), std::string::npos) << answer.message;
    EXPECT_TRUE(answer.end.empty());
  }
  outdated_.clear();
}

class P03NodeName : public ClusterTest {
 protected:
  static std::function<void(AgentHello&)> with(const std::string& secret) {
    return [secret](AgentHello& hello) { hello.secret = secret; };
  }
};

TEST_F(P03NodeName, IsTakenOverOnlyWithTheSecret) {
  HelloAnswer first = hello("a", "d1", "b1", 2, with("s1"));
  for (const char* secret : {"", "s2", "s11"}) {
    HelloAnswer answer = hello("a", "d1", "b1", 2, with(secret));
    EXPECT_EQ(answer.kind, HelloAnswer::Kind::name_taken) << secret;
    EXPECT_EQ(answer.message.find("d1"), std::string::npos) << answer.message;
    EXPECT_EQ(answer.message.find("s1"), std::string::npos) << answer.message;
  }
  EXPECT_EQ(hello("a", "d1", "b1", 2, with("s1")).node, first.node);
  EXPECT_EQ(shown_[first.node].secret, "s1");
}

TEST_F(P03NodeName, StoredWithoutSecretAcceptsFirstSecret) {
  NodeId a = join("a", "d1");
  EXPECT_EQ(hello("a", "d1", "b1", 2, with("s1")).node, a);
  EXPECT_EQ(hello("a", "d1", "b1", 2, with("s2")).kind, HelloAnswer::Kind::name_taken);
  EXPECT_EQ(hello("a", "d1", "b1", 2, with("s1")).node, a);
}

}  // namespace

}  // namespace muster::actors
