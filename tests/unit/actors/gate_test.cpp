// Nothing leaves before it is on disk: the real actors on a journal that does not answer. Requests
// of every kind arrive; no reply, acknowledgement or order may come out before the journal has
// synced.
#include "actors/gate.hpp"

#include "actors/cluster_actor.hpp"
#include "actors/journal_actor.hpp"
#include "actors/kept_actor.hpp"
#include "actors/registry_actor.hpp"
#include "core/spec/defaults.hpp"
#include "storage/memory_journal.hpp"
#include "tests/unit/actors/virtual_time.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace muster::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

struct Orders final : AgentLink {
  void launch(NodeId, uint64_t, PodId pod, core::JobObjectPtr) override {
    seen.push_back("launch " + to_string(pod));
  }
  void kill(NodeId, PodId pod, Millis) override { seen.push_back("kill " + to_string(pod)); }
  void ask(NodeId, JobId, uint64_t) override { seen.push_back("ask"); }
  void drop(NodeId) override { seen.push_back("drop"); }
  std::vector<std::string> seen;
};

// A journal that holds appends back while `silent`.
struct SlowDisk {
  storage::MemoryJournal disk;
  bool silent = false;
  std::vector<Append> held;
  std::vector<core::KeptPtr> kept;  // as written

  void take(const Append& append) {
    held.push_back(append);
    if (!silent) sync();
  }
  void sync() {
    for (Append& append : std::exchange(held, {})) {
      ASSERT_TRUE(disk.commit(append.rows));
      for (const core::KeptChange& change : append.kept) {
        auto written = std::make_shared<core::Kept>(*change.now);
        written->version = disk.last_commit();
        kept.push_back(std::move(written));
      }
      if (append.done) append.done(disk.last_commit());
    }
  }
};

journal_actor::behavior_type slow_journal(journal_actor::pointer self, SlowDisk* disk) {
  return {[disk](const Append& append) { disk->take(append); }, [](const commit_atom&) {},
          [](const begin_atom&) {}, [self](const stop_atom&) { self->quit(); }};
}

core::JobObjectPtr job(const std::string& name) {
  auto object = std::make_shared<core::JobObject>();
  object->meta.name = name;
  object->meta.ns = "default";
  object->meta.uid = "uid-" + name;
  object->spec.completion_mode = "Indexed";
  object->spec.completions = 2;
  object->spec.parallelism = 2;
  object->spec.pod.restart_policy = "Never";
  object->spec.pod.containers.resize(1);
  object->spec.pod.containers[0].name = "main";
  core::apply_defaults(object->meta, object->spec);
  object->json = "0";
  return object;
}

class GateTest : public ::testing::Test {
 protected:
  GateTest() : journal_(system_.spawn(slow_journal, &disk_)) {
    ClusterOptions cluster;
    cluster.cluster_id = "test";
    cluster.cluster_key = "key";
    cluster.line = core::EpochLine({{1, 1, 1}});
    cluster.last_commit = [this] { return disk_.disk.last_commit(); };
    cluster.show = [](auto) {};
    cluster.outdated = [](const std::string& why) { FAIL() << why; };
    WallClock clock = [this] { return now_ms_; };
    cluster_ = spawn_cluster(system_, journal_, [this] { return registry_; }, SealedLink(orders_),
                             clock, cluster, {}, {});
    RegistryOptions registry;
    registry.clock = clock;
    registry.elapsed = clock;
    registry_ =
        spawn_registry(system_, journal_, cluster_, SealedLink(orders_), {}, std::move(registry));
    kept_ = spawn_kept(system_, journal_, clock, {});
    run();
  }
  ~GateTest() override {
    disk_.silent = false;
    disk_.sync();
    run();
    caf::anon_send(registry_, stop_atom_v);
    caf::anon_send(cluster_, stop_atom_v);
    caf::anon_send(kept_, stop_atom_v);
    run();
    caf::anon_send(journal_, stop_atom_v);
    run();
  }

  void run() {
    while (scheduler_.run() > 0) {
    }
  }
  // A reply that is recorded under this name.
  template <class T>
  Reply<T> noted(const std::string& name) {
    return [this, name](T value) {
      std::string text = name;
      if constexpr (std::is_same_v<T, Status>)
        text += value.ok() ? ": done" : ": refused";
      else if constexpr (std::is_same_v<T, HelloAnswer>)
        text += value.kind == HelloAnswer::Kind::welcome ? ": welcome" : ": refused";
      replies_.push_back(text);
    };
  }
  void register_node(const std::string& name, const std::string& dir, uint64_t link) {
    RegisterAgent ask;
    ask.hello.link = link;
    ask.hello.node = name;
    ask.hello.work_dir_id = dir;
    ask.hello.boot_id = "boot";
    ask.hello.slots = 1;
    ask.done = noted<HelloAnswer>("register " + name + " of " + dir);
    caf::anon_send(cluster_, std::move(ask));
  }
  void create(const std::string& name) {
    caf::anon_send(registry_, CreateJob{job(name), noted<Status>("create " + name)});
  }
  void remove(const std::string& name, const std::string& uid) {
    caf::anon_send(registry_, DeleteJob{"default", name, uid, true, false,
                                        noted<Status>("delete " + name + " " + uid)});
  }
  void cordon(const std::string& node, const std::string& name) {
    core::NodeSpec spec;
    spec.unschedulable = true;
    caf::anon_send(cluster_, ChangeNode{node, {}, spec, noted<Status>(name)});
  }
  void renew(const std::string& json, const std::string& name) {
    caf::anon_send(kept_, WriteKept{disk_.kept.back(), lease(json), noted<Status>(name)});
  }
  static core::KeptPtr lease(const std::string& json) {
    return std::make_shared<const core::Kept>(
        core::Kept{.ns = "default", .name = "lock", .uid = "u", .json = json});
  }

  VirtualTime config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_ =
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  SlowDisk disk_;
  Orders orders_;
  Millis now_ms_ = 1'000'000;
  std::vector<std::string> replies_;
  journal_actor journal_;
  cluster_actor cluster_;
  registry_actor registry_;
  kept_actor kept_;
};

TEST_F(GateTest, NothingComesOutWhileTheJournalIsSilent) {
  register_node("a", "dir-a", 7);
  run();
  caf::anon_send(cluster_, LinkUp{1, 7});
  create("first");
  caf::anon_send(kept_, WriteKept{nullptr, lease("1"), noted<Status>("lease")});
  run();
  ASSERT_THAT(orders_.seen, ElementsAre("launch j1/0#0"));
  ASSERT_EQ(replies_.size(), 3u);
  replies_.clear();
  orders_.seen.clear();

  disk_.silent = true;
  // Each actor has rows in flight, then gets requests that it could answer at once.
  create("second");
  core::PodsReported ended;
  ended.node = 1;
  core::PodsReported::Ended end;
  end.pod = {0, 0};
  end.pid = 4711;
  ended.ends.push_back(end);
  caf::anon_send(registry_, Report{1, {{1, ended}}, noted<std::vector<PodId>>("report")});
  cordon("a", "cordon");
  renew("2", "renew");
  run();
  create("second");
  create("first");
  remove("first", "another");
  remove("nobody", "");
  caf::anon_send(registry_, AskJob{"default", "first", "another", 0, core::PodsDeletion{},
                                   noted<Status>("evict")});
  caf::anon_send(registry_, AskJob{"", "", "", 99, core::PodsDeletion{}, noted<Status>("evict")});
  cordon("a", "cordon again");
  cordon("b", "cordon nobody");
  register_node("a", "a stranger", 8);
  register_node("b", "dir-b", 9);
  renew("3", "renew late");
  run();
  caf::anon_send(cluster_, DeleteNode{"a", noted<Status>("forget")});
  remove("first", "");  // the second create gets its name
  for (int i = 0; i < 20; ++i) {
    now_ms_ += 500;
    scheduler_.advance_time(std::chrono::milliseconds(500));
    run();
  }
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(orders_.seen, IsEmpty());
  EXPECT_THAT(disk_.held, Not(IsEmpty()));

  disk_.silent = false;
  for (int i = 0; i < 10; ++i) {
    disk_.sync();
    run();
  }
  EXPECT_THAT(
      replies_,
      ::testing::UnorderedElementsAre(
          "create second: done", "report", "cordon: done", "renew: done", "create second: refused",
          "create first: done", "delete first another: refused", "delete nobody : refused",
          "evict: refused", "evict: refused", "cordon again: refused", "cordon nobody: refused",
          "register a of a stranger: refused", "register b of dir-b: welcome",
          "renew late: refused", "forget: done", "delete first : done"));
  EXPECT_THAT(orders_.seen, ::testing::Contains("drop"));
}

TEST_F(GateTest, EffectsWithoutRowsWaitForThoseUnderWayAndKeepTheirOrder) {
  disk_.silent = true;
  std::vector<int> out;
  std::vector<std::pair<uint64_t, uint64_t>> brought;
  Gate gate(journal_, SealedLink(orders_), [&] {
    return [&](uint64_t number, uint64_t commit) { brought.emplace_back(number, commit); };
  });
  gate.after([&](const Durable& durable) {
    EXPECT_EQ(durable.commit(), 0u);
    out.push_back(0);
  });
  EXPECT_THAT(out, ElementsAre(0)) << "nothing is under way";
  gate.after(Append{}, [&](const Durable& durable) {
    EXPECT_GT(durable.commit(), 0u);
    out.push_back(1);
  });
  gate.after([&](const Durable&) { out.push_back(2); });
  gate.after(Append{}, [&](const Durable&) { out.push_back(3); });
  gate.after([&](const Durable&) { out.push_back(4); });
  EXPECT_TRUE(gate.closed());
  run();
  disk_.sync();
  ASSERT_EQ(brought.size(), 2u);
  EXPECT_THAT(out, ElementsAre(0)) << "only its actor opens a gate";
  gate.open(brought[0].first, brought[0].second);
  EXPECT_THAT(out, ElementsAre(0, 1, 2));
  gate.open(brought[1].first, brought[1].second);
  EXPECT_THAT(out, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(gate.closed());
  gate.close();
}

}  // namespace
}  // namespace muster::actors
