// The real registry, cluster, job and kept actors under virtual time, on a journal that a test can
// keep silent.
#pragma once

#include "actors/cluster_actor.hpp"
#include "actors/journal_actor.hpp"
#include "actors/kept_actor.hpp"
#include "actors/registry_actor.hpp"
#include "core/spec/rules/defaults.hpp"
#include "storage/journal/memory_journal.hpp"
#include "tests/unit/actors/virtual_time.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::actors {

struct Orders final : AgentLink {
  void launch(NodeId, uint64_t, std::vector<PodId> pods, core::JobObjectPtr object) override {
    launched = std::move(object);
    for (PodId pod : pods) seen.push_back("launch " + to_string(pod));
  }
  void kill(NodeId, PodId pod, Millis) override {
    if (std::exchange(throw_once, false)) throw std::runtime_error("planted in an index actor");
    seen.push_back("kill " + to_string(pod));
  }
  void ask(NodeId, JobId, uint64_t) override { seen.push_back("ask"); }
  void drop(NodeId) override { seen.push_back("drop"); }
  std::vector<std::string> seen;
  core::JobObjectPtr launched;  // the last one
  bool throw_once = false;      // at the next kill
};

// A journal that defers appends while `silent`.
struct SlowDisk {
  storage::MemoryJournal disk;
  bool silent = false;
  std::vector<Append> held;
  size_t synced = 0;                // appends that are on disk
  std::vector<core::KeptPtr> kept;  // as written

  void take(const Append& append) {
    held.push_back(append);
    if (!silent) sync();
  }
  void sync() {
    for (Append& append : std::exchange(held, {})) {
      ++synced;
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

inline journal_actor::behavior_type slow_journal(journal_actor::pointer self, SlowDisk* disk) {
  return {[disk](const Append& append) { disk->take(append); }, [](const commit_atom&) {},
          [](const begin_atom&) {}, [self](const stop_atom&) { self->quit(); }};
}

inline core::JobObjectPtr job(const std::string& name) {
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
  object->json = name;
  return object;
}

class ActorsTest : public ::testing::Test {
 protected:
  explicit ActorsTest(RegistryOptions registry = {})
      : registry_options_(std::move(registry)), journal_(system_.spawn(slow_journal, &disk_)) {
    ClusterOptions cluster;
    cluster.settings.cluster_id = "test";
    cluster.settings.cluster_key = "key";
    cluster.settings.line = core::EpochLine({{1, 1, 1}});
    cluster.last_commit = [this] { return disk_.disk.last_commit(); };
    cluster.show = [](auto) {};
    cluster.outdated = [](const std::string& why) { FAIL() << why; };
    WallClock clock = [this] { return now_ms_; };
    cluster_ = spawn_cluster(system_, journal_, [this] { return registry_; }, SealedLink(orders_),
                             clock, cluster, {}, {});
    registry_options_.clock = clock;
    registry_options_.elapsed = clock;
    registry_options_.load_job = [this](JobId id) {
      ++loads_;
      return load_ ? load_(id) : storage::recover_job(disk_.disk, id, load_object);
    };
    registry_ =
        spawn_registry(system_, journal_, cluster_, SealedLink(orders_), {}, registry_options_);
    kept_ = spawn_kept(system_, journal_, clock, {});
    run();
  }
  ~ActorsTest() override {
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

  // Replaces the registry by one that recovered from `start`.
  void restart(RegistryStart start) {
    caf::anon_send(registry_, stop_atom_v);
    run();
    registry_ = spawn_registry(system_, journal_, cluster_, SealedLink(orders_), std::move(start),
                               registry_options_);
    run();
  }
  void run() {
    while (scheduler_.run() > 0) {
    }
  }
  // A reply callback that records the answer under this name.
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
  void register_node(const std::string& name, const std::string& dir, uint64_t link,
                     uint32_t slots = 1, uint64_t memory_bytes = 0) {
    RegisterAgent ask;
    ask.hello.memory_bytes = memory_bytes;
    ask.hello.link = link;
    ask.hello.node = name;
    ask.hello.work_dir_id = dir;
    ask.hello.boot_id = "boot";
    ask.hello.slots = slots;
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

  // Sends an agent's report that this pod ended with this exit code.
  void report_end(JobId job, PodKey pod, int exit_code,
                  core::EndCause cause = core::EndCause::exited) {
    core::PodsReported part;
    part.node = 1;
    core::PodsReported::Ended end;
    end.pod = pod;
    end.start = {4711, {}};
    end.exit_code = exit_code;
    end.cause = cause;
    part.ends.push_back(end);
    caf::anon_send(registry_, Report{1, {{job, part}}, Reply<std::vector<PodId>>([this](auto keep) {
                                       replies_.push_back("acknowledged, to keep: " +
                                                          std::to_string(keep.size()));
                                     })});
  }
  // Registers a node with this number of slots.
  void start_node(uint32_t slots, uint64_t memory_bytes = 0) {
    register_node("a", "dir-a", 7, slots, memory_bytes);
    run();
    caf::anon_send(cluster_, LinkUp{1, 7});
    run();
    replies_.clear();
  }
  // In these tests an object's text is its name.
  static core::JobObjectPtr load_object(std::string_view json) { return job(std::string(json)); }

  VirtualTime config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_ =
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  SlowDisk disk_;
  Orders orders_;
  Millis now_ms_ = 1'000'000;
  std::vector<std::string> replies_;
  std::function<Result<storage::RecoveredJob>(JobId)> load_;  // instead of reading the disk
  size_t loads_ = 0;                                          // of unloaded jobs
  RegistryOptions registry_options_;
  journal_actor journal_;
  cluster_actor cluster_;
  registry_actor registry_;
  kept_actor kept_;
};

}  // namespace muster::actors
