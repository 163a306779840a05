// KeptActor under a scheduler that runs one message at a time: the later of two writes is a
// conflict, and no reply is sent before its write is on disk.
#include "actors/journal_actor.hpp"
#include "actors/kept_actor.hpp"
#include "storage/journal/memory_journal.hpp"
#include "storage/recovery.hpp"
#include "tests/unit/actors/virtual_time.hpp"

#include <caf/actor_system.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

namespace muster::actors {
namespace {

core::KeptPtr object(core::KeptKind kind, const std::string& name, const std::string& json = "{}") {
  return std::make_shared<const core::Kept>(
      core::Kept{.kind = kind, .ns = "default", .name = name, .uid = "u-" + name, .json = json});
}
core::KeptPtr lease(const std::string& name, const std::string& json = "{}") {
  return object(core::KeptKind::lease, name, json);
}

class P24Kept : public testing::Test {
 protected:
  P24Kept() { start(); }
  ~P24Kept() override { stop(); }

  void start() {
    const auto recovered = storage::recover_head(disk_);
    ASSERT_TRUE(recovered.ok());
    shown_.clear();
    for (const core::Kept& kept : recovered->kept)
      shown_[kept.name] = std::make_shared<const core::Kept>(kept);
    journal_ = spawn_journal(system_, disk_,
                             {.show =
                                  [this](core::Committed batch) {
                                    for (const core::KeptChange& change : batch.kept) {
                                      if (change.removed)
                                        shown_.erase(change.now->name);
                                      else
                                        shown_[change.now->name] = change.now;
                                    }
                                  },
                              .failed = [](const std::string& why) { FAIL() << why; }});
    kept_ = spawn_kept(
        system_, journal_, [this] { return now_ms_; }, recovered->kept);
    run();
  }
  void stop() {
    caf::anon_send(kept_, stop_atom_v);
    caf::anon_send(journal_, stop_atom_v);
    run();
  }
  void run() {
    while (scheduler_.try_run_once()) {
    }
  }
  // Sends a write; the answer has arrived when run() returns.
  std::shared_ptr<std::optional<Status>> ask(core::KeptPtr seen, core::KeptPtr next) {
    auto answer = std::make_shared<std::optional<Status>>();
    caf::anon_send(kept_, WriteKept{std::move(seen), std::move(next),
                                    [answer](Status status) { *answer = std::move(status); }});
    return answer;
  }
  std::optional<Errc> write(core::KeptPtr seen, core::KeptPtr next) {
    auto answer = ask(std::move(seen), std::move(next));
    run();
    EXPECT_TRUE(answer->has_value());
    if (!answer->has_value() || (*answer)->ok()) return std::nullopt;
    return (*answer)->error().code;
  }

  VirtualTime config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_ =
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  storage::MemoryJournal disk_;
  Millis now_ms_ = 1'000'000;
  std::map<std::string, core::KeptPtr> shown_;
  journal_actor journal_;
  kept_actor kept_;
};

TEST_F(P24Kept, SecondUpdateOfSameVersionConflicts) {
  EXPECT_EQ(write(nullptr, lease("a", "1")), std::nullopt);
  const core::KeptPtr seen = shown_.at("a");
  EXPECT_EQ(seen->version, disk_.last_commit());
  EXPECT_EQ(write(nullptr, lease("a", "2")), Errc::exists);
  auto first = ask(seen, lease("a", "3"));
  auto second = ask(seen, lease("a", "4"));  // while the first write is in flight
  run();
  EXPECT_TRUE((*first)->ok());
  EXPECT_EQ((*second)->error().code, Errc::conflict);
  EXPECT_EQ(shown_.at("a")->json, "3");
  EXPECT_GT(shown_.at("a")->version, seen->version);
  EXPECT_EQ(shown_.at("a")->id, seen->id);
}

TEST_F(P24Kept, UpdateOfObjectBeingDeletedIsNotFound) {
  write(nullptr, lease("a"));
  const core::KeptPtr seen = shown_.at("a");
  auto removal = ask(seen, nullptr);
  auto late = ask(seen, lease("a", "2"));
  auto anew = ask(nullptr, lease("a", "3"));
  run();
  EXPECT_TRUE((*removal)->ok());
  EXPECT_EQ((*late)->error().code, Errc::not_found);
  EXPECT_TRUE((*anew)->ok());
  EXPECT_EQ(shown_.at("a")->json, "3");
  EXPECT_NE(shown_.at("a")->id, seen->id);
}

TEST_F(P24Kept, ResourceVersionsSurviveRestart) {
  write(nullptr, lease("a", "1"));
  const core::KeptPtr old = shown_.at("a");
  write(old, lease("a", "2"));
  const core::KeptPtr seen = shown_.at("a");
  stop();
  start();
  ASSERT_TRUE(shown_.contains("a"));
  EXPECT_EQ(*shown_.at("a"), *seen);
  EXPECT_EQ(write(old, lease("a", "3")), Errc::conflict);
  EXPECT_EQ(write(shown_.at("a"), lease("a", "3")), std::nullopt);
}

TEST_F(P24Kept, LeasesBeyondMaximumAreRefusedAndOldestEventsAreDeleted) {
  for (size_t i = 0; i < core::kKeptLeasesMax; ++i) ask(nullptr, lease("l" + std::to_string(i)));
  run();
  EXPECT_EQ(write(nullptr, lease("one-more")), Errc::overloaded);
  EXPECT_EQ(write(shown_.at("l7"), lease("l7", "2")), std::nullopt);
  EXPECT_EQ(write(shown_.at("l7"), nullptr), std::nullopt);
  EXPECT_EQ(write(nullptr, lease("one-more")), std::nullopt);
  const size_t leases = shown_.size();
  for (size_t i = 0; i < core::kKeptEventsMax + 5; ++i) {
    ask(nullptr, object(core::KeptKind::event, "e" + std::to_string(i)));
    if (i % 100 == 0) run();
  }
  run();
  EXPECT_LE(shown_.size() - leases, core::kKeptEventsMax);
  EXPECT_GE(shown_.size() - leases, core::kKeptEventsMax - 100);
  EXPECT_FALSE(shown_.contains("e0"));
  EXPECT_TRUE(shown_.contains("e" + std::to_string(core::kKeptEventsMax + 4)));
}

TEST_F(P24Kept, ConfigMapsAreRefusedBeyondTheQuotaOfTheirOwner) {
  const core::KeptQuota quota{3, 1'000};
  auto put = [&](const std::string& name, size_t bytes, uint32_t owner, core::KeptPtr seen = {}) {
    auto next = std::make_shared<core::Kept>(
        *object(core::KeptKind::config_map, name, std::string(bytes, 'x')));
    next->owner = owner;
    auto answer = std::make_shared<std::optional<Status>>();
    caf::anon_send(kept_,
                   WriteKept{std::move(seen), next,
                             [answer](Status status) { *answer = std::move(status); }, quota});
    return answer;
  };
  auto code = [](const std::shared_ptr<std::optional<Status>>& answer) {
    return (*answer)->ok() ? std::nullopt : std::optional((*answer)->error().code);
  };
  // Of two writes that are in flight at the same time, only one fits.
  const auto first = put("a", 600, 1), second = put("b", 600, 1), other = put("c", 600, 2);
  run();
  EXPECT_EQ(code(first), std::nullopt);
  EXPECT_EQ(code(second), Errc::overloaded);
  EXPECT_EQ(code(other), std::nullopt);
  stop();
  start();  // counts them again
  const auto grows = put("a", 1'100, 1, shown_.at("a")), fits = put("d", 400, 1);
  run();
  EXPECT_EQ(code(grows), Errc::overloaded);
  EXPECT_EQ(code(fits), std::nullopt);
  const auto shrinks = put("a", 100, 1, shown_.at("a"));
  run();
  EXPECT_EQ(code(shrinks), std::nullopt);
  const auto third = put("e", 100, 1), fourth = put("f", 1, 1);
  run();
  EXPECT_EQ(code(third), std::nullopt);
  EXPECT_EQ(code(fourth), Errc::overloaded) << "three are the most";
  EXPECT_EQ(write(shown_.at("e"), nullptr), std::nullopt);
  const auto instead = put("f", 1, 1);
  run();
  EXPECT_EQ(code(instead), std::nullopt);
}

TEST_F(P24Kept, EventsExpireAfterAnHourAndLeasesStay) {
  write(nullptr, lease("a"));
  write(nullptr, object(core::KeptKind::event, "old"));
  now_ms_ += core::kKeptEventMs / 2;
  write(nullptr, object(core::KeptKind::event, "young"));
  now_ms_ += core::kKeptEventMs / 2 + 1;
  caf::anon_send(kept_, wake_atom_v);
  run();
  EXPECT_FALSE(shown_.contains("old"));
  EXPECT_TRUE(shown_.contains("young"));
  EXPECT_TRUE(shown_.contains("a"));
}

}  // namespace
}  // namespace muster::actors
