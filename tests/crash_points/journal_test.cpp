// Crash points of the coordinator's data-dir: the real actors on RocksDB, cut at every system call.
//
// The test records one run of a cluster with jobs of every kind: each system call that changes the
// data-dir, and each acknowledged commit. For every call and every kind of loss, the ordinary code
// opens the directory that a crash there leaves. It must have all acknowledged commits, at most the
// one in progress besides, and exactly their rows. The actors then finish the run on it, and every
// job must end as it does without a crash.
//
// MUSTER_CUT_EVERY=N checks only every N-th directory.
#include "api/kube/objects/manifest.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/memory_journal.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/recovery.hpp"
#include "storage/rows/rows.hpp"
#include "storage/verify.hpp"
#include "tests/crash_points/disk.hpp"
#include "tests/sim/world.hpp"
#include "tests/unit/api/admit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::crash {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using storage::Journal;
using storage::RocksdbJournal;
using storage::Row;

core::JobObjectPtr load(std::string_view json) {
  return api::load_job(json);
}

// ---- a journal's content

using Content = std::map<std::string, std::string>;

// The committed rows, without those that RocksdbJournal adds.
Content content_of(storage::Rows& rows) {
  Content content;
  const Status read = rows.scan("", [&content](std::string_view key, std::string_view value) {
    if (key != storage::keys::kFormat && key != storage::keys::kCommit)
      content.emplace_hint(content.end(), key, value);
    return true;
  });
  MUSTER_CHECK(read.ok(), read.error().message);
  return content;
}

Content with(Content content, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.value)
      content[row.key] = *row.value;
    else
      content.erase(row.key);
  }
  return content;
}

sim::Store::Held held(Journal& journal) {
  sim::Store::Held held{{}, journal.last_commit()};
  for (const auto& [key, value] : content_of(journal)) held.rows.push_back({key, value});
  return held;
}

// Rows that no job writes: a user's token is created, used up and removed.
std::vector<Row> others(uint64_t commit) {
  core::Token token{.id = "f00d", .subject = "ada", .uid = 1000, .hash = "ab", .by = "root"};
  switch (commit) {
    case 5:
      return {storage::token_row(token)};
    case 25:
      return {storage::revoked_row("node-9", 1)};
    case 45:
      return {storage::forget_token_row(token.id)};
    default:
      return {};
  }
}

// The coordinator is restarted before these commits.
const std::set<uint64_t> kRestarts = {15, 30, 45, 60, 61, 80, 100};

// Writes everything to a data-dir and remembers it.
class Recorder final : public sim::Store {
 public:
  explicit Recorder(std::string dir) : dir_(std::move(dir)) {}

  Status commit(const std::vector<Row>& rows) override {
    const uint64_t number = journal_->last_commit() + 1;
    if (restarts_.erase(number) > 0) return Error{Errc::unavailable, "a planned restart"};
    std::vector<Row> all = rows;
    std::ranges::move(others(number), std::back_inserter(all));
    const Status done = journal_->commit(all);
    MUSTER_CHECK(done.ok(), done.error().message);
    mark("commit");
    contents.push_back(with(contents.back(), all));
    batches.push_back(std::move(all));
    if (number == 1) MUSTER_CHECK(RocksdbJournal::note_cluster(dir_, "sim").ok());
    return Nothing{};
  }

  Held start() override {
    journal_.reset();
    auto opened = RocksdbJournal::open_to_read(dir_);
    MUSTER_CHECK(opened.ok(), opened.error().message);
    journal_ = std::move(*opened);
    return held(*journal_);
  }

  std::vector<Content> contents{{}};  // after each commit, from 0
  std::vector<std::vector<Row>> batches;

 private:
  const std::string dir_;
  std::set<uint64_t> restarts_ = kRestarts;
  std::unique_ptr<Journal> journal_;
};

// The same run in memory up to a commit. Then the power fails, and it continues on this journal.
class Cut final : public sim::Store {
 public:
  Cut(uint64_t acknowledged, Journal& then) : acknowledged_(acknowledged), then_(then) {}

  Status commit(const std::vector<Row>& rows) override {
    if (cut_) return then_.commit(rows);
    const uint64_t number = before_.last_commit() + 1;
    if (number > acknowledged_) {
      cut_ = true;
      return Error{Errc::unavailable, "power is gone"};
    }
    if (restarts_.erase(number) > 0) return Error{Errc::unavailable, "a planned restart"};
    std::vector<Row> all = rows;
    std::ranges::move(others(number), std::back_inserter(all));
    return before_.commit(all);
  }
  Held start() override { return cut_ ? held(then_) : held(before_); }
  Content before() { return content_of(before_); }

 private:
  const uint64_t acknowledged_;
  std::set<uint64_t> restarts_ = kRestarts;
  storage::MemoryJournal before_;
  bool cut_ = false;
  Journal& then_;
};

// ---- the run

core::JobObjectPtr job(const std::string& name, const Json& spec, int generation = 1,
                       int version = 0) {
  static std::map<std::string, int> numbers;
  const int number = numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second;
  Json whole = spec;
  whole["template"]["spec"] = {{"restartPolicy", "Never"},
                               {"containers", {{{"name", "main"}, {"command", {"true"}}}}}};
  const Json object = {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", {{"name", name}, {"annotations", {{"version", std::to_string(version)}}}}},
      {"spec", whole}};
  auto parsed = api::parse_job(object.dump(), api::FieldValidation::strict);
  MUSTER_CHECK(parsed.ok(), parsed.error().message);
  api::Admission admission;
  admission.ns = "default";
  char uid[37];
  std::snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012d", number);
  admission.uid = uid;
  admission.now_ms = 1'700'000'000'000;
  auto admitted = api::admit_job(std::move(*parsed), admission);
  MUSTER_CHECK(admitted.ok(), admitted.error().message);
  if (generation == 1) return *admitted;
  Json json = Json::parse((*admitted)->json);
  json["metadata"]["generation"] = generation;
  return api::load_job(json.dump());
}

Json on_code(const char* action, int code) {
  return {{"action", action}, {"onExitCodes", {{"operator", "In"}, {"values", {code}}}}};
}

// The jobs by name. Their outcomes do not depend on when their pods run.
const std::map<std::string, Json>& specs() {
  static const std::map<std::string, Json> all = {
      {"plain", {{"completions", 3}, {"parallelism", 2}, {"backoffLimit", 10}}},
      {"limits",
       {{"completionMode", "Indexed"},
        {"completions", 4},
        {"parallelism", 2},
        {"backoffLimitPerIndex", 1},
        {"maxFailedIndexes", 2}}},
      {"rules",
       {{"completionMode", "Indexed"},
        {"completions", 3},
        {"parallelism", 3},
        {"backoffLimitPerIndex", 2},
        {"podFailurePolicy",
         {{"rules", {on_code("FailIndex", 5), on_code("Ignore", 6), on_code("Count", 7)}}}}}},
      {"fails",
       {{"completions", 3},
        {"parallelism", 1},
        {"podFailurePolicy", {{"rules", {on_code("FailJob", 3)}}}}}},
      {"backoff", {{"completions", 2}, {"parallelism", 1}, {"backoffLimit", 1}}},
      {"success",
       {{"completionMode", "Indexed"},
        {"completions", 3},
        {"parallelism", 1},
        {"successPolicy", {{"rules", {{{"succeededIndexes", "0-1"}}}}}}}},
      {"replaced",
       {{"completionMode", "Indexed"},
        {"completions", 2},
        {"parallelism", 2},
        {"podReplacementPolicy", "Failed"}}},
      {"paused",
       {{"completionMode", "Indexed"}, {"completions", 3}, {"parallelism", 2}, {"suspend", true}}},
      {"scaled",
       {{"completionMode", "Indexed"}, {"completions", 2}, {"parallelism", 2}, {"suspend", true}}},
      {"removed", {{"completionMode", "Indexed"}, {"completions", 2}, {"parallelism", 2}}},
      {"expires", {{"completions", 1}, {"ttlSecondsAfterFinished", 1}}},
  };
  return all;
}

int code_of(const std::string& name, PodId pod) {
  if (name == "plain") return pod.index < 2 && pod.attempt == 0 ? 1 : 0;
  if (name == "limits") return pod.index == 1 || (pod.index == 2 && pod.attempt == 0) ? 1 : 0;
  if (name == "rules" && pod.index == 0) return 5;
  if (name == "rules" && pod.attempt == 0) return pod.index == 1 ? 6 : 7;
  if (name == "fails") return 3;
  if (name == "backoff") return 1;
  if (name == "replaced") return pod.attempt == 0 ? 1 : 0;
  return 0;
}

// Plays the whole run and reports how every job ended.
struct Ended {
  std::map<std::string, std::string> jobs;
  std::vector<std::string> broken;
};

class Run {
 public:
  explicit Run(sim::Store& store) : world_(plan(store)) {}

  Ended play() {
    world_.may_scale = true;
    world_.exit_code = [this](PodId pod) {
      const core::Job* job = world_.shown(pod.job);
      return job ? code_of(job->object().meta.name, pod) : 0;
    };
    for (const auto& [name, spec] : specs()) world_.submit(job(name, spec));
    change("scaled", {{"suspend", false}, {"completions", 4}, {"parallelism", 4}});
    change("paused", {{"suspend", false}});
    remove("removed");
    for (const char* name : {"plain", "limits", "rules", "fails"}) end(name);
    change("paused", {{"suspend", true}});
    change("scaled", {{"completions", 3}, {"parallelism", 3}});
    for (const char* name : {"backoff", "success", "replaced", "scaled"}) end(name);
    change("paused", {{"suspend", false}, {"parallelism", 3}});
    world_.submit(job("removed", specs().at("removed")));
    end("paused");
    end("removed");
    until("expires is gone", [this] { return !world_.shown("expires"); });
    remove("plain");
    Ended ended;
    for (const auto& [name, spec] : specs()) ended.jobs[name] = how(name);
    ended.broken = world_.broken;
    for (std::string& wrong : world_.verify()) ended.broken.push_back("verify: " + wrong);
    return ended;
  }

 private:
  static sim::Plan plan(sim::Store& store) {
    sim::Plan plan;
    plan.seed = 7;
    plan.agents = 2;
    plan.slots = 3;
    plan.crashes = plan.mid_commit = plan.agent_restarts = plan.breaks = plan.silences =
        plan.index_deaths = 0;
    plan.recent_max = 3;
    plan.pod_ms_max = 100;
    plan.store = &store;
    return plan;
  }

  void until(const std::string& what, const std::function<bool()>& done) {
    MUSTER_CHECK(world_.run(done, 3'600'000), what);
  }
  void end(const std::string& name) {
    until(name + " ends: " + world_.picture(name), [this, &name] {
      const core::Job* job = world_.shown(name);
      return job && job->finished();
    });
  }
  // Repeats the change until it shows, like a client that got no answer.
  void change(const std::string& name, Json to) {
    Json& spec = specs_.try_emplace(name, specs().at(name)).first->second;
    spec.merge_patch(to);
    const int version = ++versions_[name];
    int looks = 0;
    until(name + " is changed", [&] {
      const core::Job* now = world_.shown(name);
      if (!now) return false;
      if (now->object().meta.annotations.at("version") == std::to_string(version)) return true;
      if (looks++ % 300 == 0)
        world_.ask(name, core::OwnerUpdate{
                             0, now->object_ptr(),
                             job(name, spec, static_cast<int>(now->object().meta.generation) + 1,
                                 version)});
      return false;
    });
  }
  void remove(const std::string& name) {
    int looks = 0;
    until(name + " is gone", [&] {
      if (!world_.shown(name)) return true;
      if (looks++ % 300 == 0) world_.remove(name, true, false);
      return false;
    });
  }

  std::string how(const std::string& name) const {
    const core::Job* job = world_.shown(name);
    if (!job) return "gone";
    const core::JobState& state = job->state();
    std::string text = "generation " + std::to_string(state.generation) + ", succeeded " +
                       std::to_string(job->succeeded()) + ", completed " + state.completed.text() +
                       ", failed indexes " + state.failed_indexes.text();
    // The number of pods ended along the way depends on when they ran.
    if (name != "paused" && name != "scaled") text += ", failed " + std::to_string(state.failed);
    for (const core::Condition& condition : state.conditions)
      text += ", " + std::string(core::name(condition.type)) + " " +
              std::string(core::name(condition.reason));
    return text;
  }

  sim::World world_;
  std::map<std::string, Json> specs_;
  std::map<std::string, int> versions_;
};

struct Recorded {
  std::vector<Op> ops;
  std::vector<Content> contents;
  std::vector<std::vector<Row>> batches;
  Ended ended;
  bool whole = false;  // replaying the ops gives the directory
};

const Recorded& recorded() {
  static const Recorded one = [] {
    Recorded made;
    Scratch scratch;
    const std::string dir = scratch.path().string() + "/data";
    (void)start(scratch.path());
    {
      Recorder recorder(dir);
      made.ended = Run(recorder).play();
      made.contents = std::move(recorder.contents);
      made.batches = std::move(recorder.batches);
    }
    made.ops = stop().ops;
    made.whole = whole(made.ops, scratch.path());
    return made;
  }();
  return one;
}

// ---- cuts

struct Tally {
  uint64_t points = 0;       // system calls times losses
  uint64_t directories = 0;  // distinct ones among them, all opened
  uint64_t finished = 0;     // those of them on which the run was finished
};

// Opens what is left of a data-dir. Returns what is wrong with it, or "".
std::string open_left(const fs::path& dir, uint64_t acknowledged,
                      std::unique_ptr<Journal>& journal) {
  const std::vector<Content>& contents = recorded().contents;
  auto opened = RocksdbJournal::open(dir.string());
  if (!opened.ok()) return opened.error().message;
  journal = std::move(*opened);
  const uint64_t commit = journal->last_commit();
  if (commit < acknowledged)
    return "commit " + std::to_string(acknowledged) + " was acknowledged, only " +
           std::to_string(commit) + " are there";
  if (commit > acknowledged + 1 || commit >= contents.size())
    return "commit " + std::to_string(commit) + " was never made";
  if (content_of(*journal) != contents[commit])
    return "the rows are not those of commit " + std::to_string(commit);
  const storage::Verified verified = storage::verify(*journal, load);
  if (!verified.mismatches.empty()) return "verify: " + verified.mismatches.front();
  return "";
}

// Finishes the run on this journal.
std::string finish(Journal& journal, uint64_t acknowledged, const Recorded& uncut) {
  Cut cut(acknowledged, journal);
  const Ended ended = Run(cut).play();
  if (cut.before() != uncut.contents[acknowledged])
    return "the run is not the same as the recorded one";
  if (!ended.broken.empty()) return ended.broken.front();
  for (const auto& [name, how] : ended.jobs)
    if (how != uncut.ended.jobs.at(name))
      return name + ": " + how + "; without a crash: " + uncut.ended.jobs.at(name);
  const storage::Verified verified = storage::verify(journal, load);
  if (!verified.mismatches.empty()) return "verify, at the end: " + verified.mismatches.front();
  return "";
}

constexpr size_t kProblemsMax = 5;

// Where to cut: after each of `ops`, on a disk to which `before` was applied and on which this many
// commits were acknowledged.
struct Cuts {
  std::vector<Op> ops;
  std::vector<Op> before{};
  uint64_t acknowledged = 0;
  bool finishes = false;  // finish the run on what is left
  uint64_t every = 1;
};

Disk disk_before(const Cuts& cuts) {
  Disk disk;
  for (const Op& op : cuts.before) disk.apply(op);
  return disk;
}

// Returns the first few problems.
std::vector<std::string> cut(const Cuts& cuts, Tally& tally) {
  // A directory left by several cuts is checked for the last one, when the most commits have been
  // acknowledged.
  std::unordered_map<size_t, std::pair<size_t, Loss>> last;
  Disk disk = disk_before(cuts);
  for (size_t n = 0; n < cuts.ops.size(); ++n) {
    disk.apply(cuts.ops[n]);
    for (Loss loss : kLosses) last[disk.after(loss).hash()] = {n, loss};
  }
  std::vector<std::vector<Loss>> wanted(cuts.ops.size());
  for (const auto& [hash, at] : last) wanted[at.first].push_back(at.second);
  std::vector<std::string> problems;
  std::set<std::pair<uint64_t, uint64_t>> finished;
  Scratch scratch;
  disk = disk_before(cuts);
  uint64_t acknowledged = cuts.acknowledged, turn = 0;
  for (size_t n = 0; n < cuts.ops.size(); ++n) {
    disk.apply(cuts.ops[n]);
    if (cuts.ops[n].kind == Op::Kind::mark)
      ++acknowledged;
    else
      tally.points += std::size(kLosses);
    std::ranges::sort(wanted[n]);
    for (Loss loss : wanted[n]) {
      if (turn++ % cuts.every != 0) continue;
      ++tally.directories;
      const fs::path root = scratch.path() / "left";
      disk.after(loss).put(root);
      std::unique_ptr<Journal> journal;
      std::string problem = open_left(root / "data", acknowledged, journal);
      // The same commits mean the same rows, and so the same rest of the run.
      if (problem.empty() && cuts.finishes &&
          finished.emplace(acknowledged, journal->last_commit()).second) {
        ++tally.finished;
        problem = finish(*journal, acknowledged, recorded());
      }
      journal.reset();
      fs::remove_all(root);
      if (problem.empty()) continue;
      problems.push_back("after system call " + std::to_string(n) + " (" + to_string(cuts.ops[n]) +
                         "), " + name(loss) + ": " + problem);
      if (problems.size() >= kProblemsMax) return problems;
    }
  }
  return problems;
}

uint64_t every() {
  const char* text = std::getenv("MUSTER_CUT_EVERY");
  return text ? std::max<uint64_t>(1, std::strtoull(text, nullptr, 10)) : 1;
}

struct CrashPoints : testing::Test {
  CrashPoints() { log::setup("crash_points_test", "error"); }
};

TEST_F(CrashPoints, TheRecordedRunIsWholeAndSound) {
  EXPECT_TRUE(recorded().whole) << "a system call that changes files was missed";
  for (const std::string& rule : recorded().ended.broken) ADD_FAILURE() << rule;
  EXPECT_GT(recorded().batches.size(), *kRestarts.rbegin()) << "some restarts did not happen";
  const std::map<std::string, std::string> ends = {{"plain", "gone"},
                                                   {"limits", "Failed FailedIndexes"},
                                                   {"rules", "Failed FailedIndexes"},
                                                   {"fails", "Failed PodFailurePolicy"},
                                                   {"backoff", "Failed BackoffLimitExceeded"},
                                                   {"success", "Complete SuccessPolicy"},
                                                   {"replaced", "Complete CompletionsReached"},
                                                   {"paused", "Complete CompletionsReached"},
                                                   {"scaled", "Complete CompletionsReached"},
                                                   {"removed", "Complete CompletionsReached"},
                                                   {"expires", "gone"}};
  for (const auto& [name, how] : recorded().ended.jobs)
    EXPECT_TRUE(how.ends_with(ends.at(name))) << name << ": " << how;
}

TEST_F(CrashPoints, NothingAcknowledgedIsLostAndEveryRunEndsTheSame) {
  Tally tally;
  for (const std::string& problem :
       cut({.ops = recorded().ops, .finishes = true, .every = every()}, tally))
    ADD_FAILURE() << problem;
  std::printf(
      "crash points cut: %llu on %zu commits; %llu different directories, %llu runs finished\n",
      static_cast<unsigned long long>(tally.points), recorded().batches.size(),
      static_cast<unsigned long long>(tally.directories),
      static_cast<unsigned long long>(tally.finished));
  if (!HasFailure())
    std::printf("proof %llu crash points cut in files\n",
                static_cast<unsigned long long>(tally.points));
}

// The power fails again while a coordinator recovers from a crash.
TEST_F(CrashPoints, CrashDuringRecoveryLosesNothingAcknowledged) {
  Tally tally;
  const std::vector<Op>& ops = recorded().ops;
  const size_t step = ops.size() / 4;
  Disk disk;
  for (size_t n = 0; n < ops.size(); ++n) {
    disk.apply(ops[n]);
    if (n % step != step / 2) continue;
    for (Loss loss : {Loss::all, Loss::torn}) {
      SCOPED_TRACE("after system call " + std::to_string(n) + ", " + name(loss));
      Scratch scratch;
      disk.after(loss).put(scratch.path() / "left");
      Cuts cuts{.ops = {}, .before = start(scratch.path() / "left"), .every = 3 * every()};
      {
        auto journal = RocksdbJournal::open_to_read(scratch.path() / "left" / "data");
        ASSERT_TRUE(journal.ok()) << journal.error().message;
        cuts.acknowledged = (*journal)->last_commit();
        for (uint64_t next = cuts.acknowledged; next < cuts.acknowledged + 2; ++next) {
          ASSERT_TRUE((*journal)->commit(recorded().batches.at(next)).ok());
          mark("commit");
        }
      }
      cuts.ops = stop().ops;
      for (const std::string& problem : cut(cuts, tally)) ADD_FAILURE() << problem;
    }
  }
  std::printf("crash points cut in recoveries: %llu; %llu different directories\n",
              static_cast<unsigned long long>(tally.points),
              static_cast<unsigned long long>(tally.directories));
  if (!HasFailure())
    std::printf("proof %llu crash points cut in files\n",
                static_cast<unsigned long long>(tally.points));
}

// ---- a system call fails, and the process continues

//
// After some failures, an assertion in Debian's build of RocksDB ends the process, so the runs take
// place in child processes, each of which starts where the previous one ended.

// The run in progress, for __assert_fail.
struct Failing {
  uint64_t acknowledged = 0;
  fs::path dir;  // receives what is left of it
};
std::atomic<Failing*> failing = nullptr;

// Saves what is left of the watched directory. Returns how many system calls failed.
uint64_t leave(const Failing& run) {
  const Watched watched = stop();
  Disk disk;
  for (const Op& op : watched.ops) disk.apply(op);
  disk.after(Loss::nothing).put(run.dir / "kept");
  disk.after(Loss::all).put(run.dir / "lost");
  return watched.failed;
}

std::string judge_left(const Failing& run) {
  std::string problem;
  for (const char* left : {"kept", "lost"}) {
    std::unique_ptr<Journal> journal;
    if (problem.empty()) problem = open_left(run.dir / left / "data", run.acknowledged, journal);
    journal.reset();
    fs::remove_all(run.dir / left);
  }
  return problem;
}

// Commits batches, with restarts, while a system call fails. Returns what is wrong.
std::string commit_with(const Failure& failure, const fs::path& to, uint64_t& failed) {
  constexpr uint64_t kBatches = 20;
  Scratch scratch;
  const std::string dir = scratch.path().string() + "/data";
  std::string problem;
  Failing run{0, to};
  (void)start(scratch.path(), failure);
  failing = &run;
  {
    std::unique_ptr<Journal> journal;
    for (uint64_t next = 1; next <= kBatches; ++next) {
      if (journal == nullptr || kRestarts.contains(next)) {
        journal.reset();
        auto opened = RocksdbJournal::open_to_read(dir);
        if (!opened.ok()) break;  // a real coordinator would not start
        journal = std::move(*opened);
        if (journal->last_commit() != next - 1) problem = "a restart finds a different last commit";
      }
      if (journal->commit(recorded().batches.at(next - 1)).ok()) {
        run.acknowledged = next;
        continue;
      }
      for (int again = 0; again < 3; ++again)
        if (journal->commit(recorded().batches.at(next - 1)).ok())
          problem = "acknowledged a commit after a failed one";
      break;
    }
  }
  failing = nullptr;
  failed = leave(run);
  const std::string lost = judge_left(run);
  return problem.empty() ? lost : problem;
}

constexpr int kAsserted = 77;  // exit status of a child ended by an assertion

// What the child processes do: MUSTER_FAIL is "FIRST FOR_GOOD DIRECTORY".
TEST_F(CrashPoints, DISABLED_FailsSystemCalls) {
  const char* text = std::getenv("MUSTER_FAIL");
  ASSERT_NE(text, nullptr);
  std::istringstream in(text);
  uint64_t nth = 0;
  bool for_good = false;
  fs::path dir;
  in >> nth >> for_good >> dir;
  (void)recorded();
  for (;; nth += every()) {
    std::ofstream(dir / "call") << nth << std::flush;
    uint64_t failed = 0;
    const std::string problem = commit_with({nth, for_good ? ENOSPC : EIO, for_good}, dir, failed);
    ASSERT_EQ(problem, "") << "system call " << nth;
    if (failed == 0) break;  // the run makes fewer calls than that
  }
}

TEST_F(CrashPoints, FailedSystemCallAcknowledgesNothingThatIsNotOnDisk) {
  auto number = [](const fs::path& path) {
    uint64_t number = 0;
    std::ifstream(path) >> number;
    return number;
  };
  uint64_t runs = 0, asserted = 0;
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  for (const char* for_good : {"0", "1"}) {
    Scratch scratch;
    setenv(kScratchVariable, scratch.path().c_str(), 1);
    for (uint64_t nth = 1;;) {
      setenv("MUSTER_FAIL",
             (std::to_string(nth) + " " + for_good + " " + scratch.path().string()).c_str(), 1);
      const std::string command = program +
                                  " --gtest_also_run_disabled_tests --gtest_brief=1"
                                  " --gtest_filter=*DISABLED_FailsSystemCalls >" +
                                  (scratch.path() / "out").string() + " 2>&1";
      const int status = std::system(command.c_str());
      const uint64_t last = number(scratch.path() / "call");
      runs += (last - nth) / every() + 1;
      if (status == 0) break;
      std::ifstream out(scratch.path() / "out");
      ASSERT_EQ(WEXITSTATUS(status), kAsserted)
          << std::string{std::istreambuf_iterator<char>(out), {}};
      ++asserted;
      ASSERT_EQ(judge_left({number(scratch.path() / "acknowledged"), scratch.path()}), "")
          << "system call " << last << ", which ended the process";
      nth = last + every();
    }
    unsetenv(kScratchVariable);
  }
  std::printf("failing system calls: %llu; %llu of them ended the process\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(asserted));
  if (!HasFailure())
    std::printf("proof %llu system calls failed\n", static_cast<unsigned long long>(runs));
}

// ---- planted faults, each of which the cuts must detect

struct Planted {
  const char* name;
  void (*plant)(std::vector<Op>& ops);
  const char* noticed;
};

bool writes(const std::vector<Op>& ops, const Op& op, const std::string& suffix) {
  return (op.kind == Op::Kind::write || op.kind == Op::Kind::sync) && op.file != 0 &&
         std::ranges::any_of(ops, [&](const Op& made) {
           return made.kind == Op::Kind::make_file && made.file == op.file &&
                  (made.path.ends_with(suffix) ||
                   made.path.find(suffix + "-") != std::string::npos);
         });
}
void drop(std::vector<Op>& ops, Op::Kind kind, const std::string& suffix) {
  const std::vector<Op> all = ops;
  std::erase_if(ops, [&](const Op& op) { return op.kind == kind && writes(all, op, suffix); });
}
// Moves each op selected by `which` ahead of the `by` ops that precede it.
void hasten(std::vector<Op>& ops, size_t by, const std::function<bool(const Op&)>& which) {
  for (size_t n = 60; n < ops.size(); ++n)  // after the files have been created
    if (which(ops[n]))
      std::rotate(ops.begin() + static_cast<ptrdiff_t>(n - by),
                  ops.begin() + static_cast<ptrdiff_t>(n),
                  ops.begin() + static_cast<ptrdiff_t>(n + 1));
}

const Planted kPlanted[] = {
    {"TheLogIsNotSynced", [](std::vector<Op>& ops) { drop(ops, Op::Kind::sync, ".log"); },
     "was acknowledged"},
    {"AcknowledgedBeforeTheSync",
     [](std::vector<Op>& ops) {
       hasten(ops, 3, [](const Op& op) { return op.kind == Op::Kind::mark; });
     },
     "was acknowledged"},
    {"DirectoriesAreNotSynced",
     [](std::vector<Op>& ops) {
       std::erase_if(ops, [](const Op& op) { return op.kind == Op::Kind::sync && op.file == 0; });
     },
     "was acknowledged"},
    {"TheManifestIsNotSynced", [](std::vector<Op>& ops) { drop(ops, Op::Kind::sync, "MANIFEST"); },
     "the journal is damaged"},
    {"TheWatermarkIsWrittenFirst",
     [](std::vector<Op>& ops) {
       const std::vector<Op> all = ops;
       hasten(ops, 2, [&all](const Op& op) {
         return op.kind == Op::Kind::write && writes(all, op, "data/commit");
       });
     },
     "ACKNOWLEDGED DATA IS MISSING"},
    {"ABatchIsNotWritten",
     [](std::vector<Op>& ops) {
       const std::vector<Op> all = ops;
       int writes_left = 10;
       std::erase_if(ops, [&](const Op& op) {
         return op.kind == Op::Kind::write && writes(all, op, ".log") && --writes_left == 0;
       });
     },
     ""},
};

struct PlantedTest : CrashPoints, testing::WithParamInterface<Planted> {};

TEST_P(PlantedTest, PlantedJournalFaultIsNoticed) {
  std::vector<Op> ops = recorded().ops;
  ops.resize(ops.size() / 6);
  GetParam().plant(ops);
  Tally tally;
  const std::vector<std::string> problems = cut({.ops = ops}, tally);
  ASSERT_FALSE(problems.empty());
  EXPECT_TRUE(std::ranges::any_of(problems, [](const std::string& problem) {
    return problem.find(GetParam().noticed) != std::string::npos;
  })) << problems.front();
  if (!HasFailure()) std::printf("proof 1 planted faults noticed\n");
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedTest, testing::ValuesIn(kPlanted),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::crash

// Replaces libc's handler, for assertions in RocksDB.
extern "C" [[noreturn]] void __assert_fail(const char* what, const char* file, unsigned line,
                                           const char* function) noexcept {
  using namespace muster::crash;
  std::fprintf(stderr, "%s:%u: %s: assertion %s\n", file, line, function, what);
  if (const Failing* run = failing.exchange(nullptr)) {
    leave(*run);
    std::ofstream(run->dir / "acknowledged") << run->acknowledged << std::flush;
    _exit(kAsserted);
  }
  std::abort();
}
