// A watch is a history: whatever is committed, each watcher of jobs and stored objects gets each
// state of each object that it selects, once, in the order of versions.
//
// The model lists all objects after each commit and derives the events from the differences.
#include "api/kube/objects/kept_object.hpp"
#include "api/view/query/watch.hpp"
#include "api/view/render/render.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace muster::api {
namespace {

using namespace testing;

// By what the client asks for.
using Wants = std::function<bool(const Json&)>;

bool all(const Json&) {
  return true;
}
bool tier_a(const Json& object) {
  const Json& meta = object.at("metadata");
  return meta.contains("labels") && meta["labels"].value("tier", "") == "a";
}

// Objects are without their versions. `version` 0: the change is a removal, whose version is only
// known to be one of the commit.
struct Committed {
  uint64_t commit = 0, version = 0;
  Key key;
  Json before, after;  // null: it did not exist
};

struct Event {
  std::string type;
  Json object;
  uint64_t version = 0;
  bool operator==(const Event&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Event& event) {
  return out << event.type << " v" << event.version << " " << event.object.dump();
}
using Events = std::map<uint64_t, std::map<Key, Event>>;  // by commit

struct Watcher {
  Kind kind;
  Query query;
  Wants wants;
  uint64_t from = 0, last = 0;  // versions
  std::unique_ptr<Watch> watch;
  Events events;
};

class CommittedHistory : public ::testing::Test {
 protected:
  static constexpr Kind kKindsHere[] = {Kind::job, Kind::config_map};
  static constexpr uint32_t kIndexes = 8;

  CommittedHistory() {
    view.load_with(
        [this](JobId id) -> Result<core::Job> {
          const auto it = jobs.find(id);
          if (it == jobs.end()) return Error{Errc::not_found, "", {}};
          return it->second;
        },
        1);
  }

  size_t below(size_t n) { return random() % n; }

  Json object_of(const Shown& shown) {
    std::string text;
    renderer.object(text, shown);
    Json json = Json::parse(text);
    EXPECT_EQ(json["metadata"]["resourceVersion"], std::to_string(shown.version)) << text;
    json["metadata"].erase("resourceVersion");
    return json;
  }

  // Commits what has been prepared and notes how the lists differ.
  void flush() {
    pending.commit = ++commit;
    view.commit(std::exchange(pending, {}));
    versions.push_back(view.version());
    for (const Kind kind : kKindsHere) {
      std::map<Key, std::pair<uint64_t, Json>> now;
      view.each(kind, "", nullptr, [&](const Shown& shown) {
        now[key_of(shown)] = {shown.version, object_of(shown)};
      });
      compare(listed[kind], now);
      listed[kind] = std::move(now);
    }
  }

  using Listed = std::map<Key, std::pair<uint64_t, Json>>;
  void compare(const Listed& before, const Listed& after) {
    for (const auto& [key, object] : after) {
      const auto it = before.find(key);
      if (it != before.end() && it->second.first == object.first) {
        EXPECT_EQ(it->second.second, object.second) << "one version, two states";
        continue;
      }
      model.push_back({commit, object.first, key, it == before.end() ? Json() : it->second.second,
                       object.second});
    }
    for (const auto& [key, object] : before)
      if (!after.contains(key)) model.push_back({commit, 0, key, object.second, Json()});
  }

  void batch(JobId id, std::vector<core::Record> records) {
    auto made = std::make_shared<core::JobRecords>();
    made->job = id;
    const auto known = jobs.find(id);
    if (known != jobs.end() && known->second.can_unload())
      made->before = std::make_shared<const core::Job>(known->second);
    for (const core::Record& record : records) {
      if (const auto* admitted = std::get_if<core::JobAdmitted>(&record))
        jobs.emplace(id, core::Job(id, admitted->object));
      jobs.at(id).apply(record);
    }
    if (jobs.at(id).state().forgotten) jobs.erase(id);
    made->records = std::move(records);
    pending.jobs.push_back(std::move(made));
  }

  // Some change to a job that has none in this commit yet.
  void change_job() {
    if (jobs.size() < 4 || (jobs.size() < 10 && below(6) == 0)) return admit();
    auto it = std::next(jobs.begin(), static_cast<long>(below(jobs.size())));
    const JobId id = it->first;
    if (std::ranges::any_of(pending.jobs, [&](const auto& one) { return one->job == id; })) return;
    const core::Job& job = it->second;
    const size_t open = job.state().open.size();
    if (job.state().deleted_at) {
      if (open == 0) return batch(id, {core::JobForgotten{kStart}});
    } else if (below(40) == 0) {
      return batch(id, {core::JobDeleted{kStart, below(2) == 0}});
    } else if (below(6) == 0) {
      return batch(id, {respecified(job)});
    } else if (open == 0) {
      if (!job.finished())
        batch(id, {core::FinishDecided{kStart, true}, core::JobFinished{kStart}});
      return;
    }
    if (auto records = moves(job); !records.empty()) batch(id, std::move(records));
  }

  void admit() {
    const JobId id = ++last_job;
    batch(id,
          {core::JobAdmitted{kStart,
                             make_job("j" + std::to_string(id % 7), uid_of(static_cast<int>(id)),
                                      kIndexes, R"(,"backoffLimitPerIndex":1)")},
           core::JobStarted{kStart}, core::PodsCreated{kStart, {{.first = 0, .count = kIndexes}}}});
  }

  // With another label, and perhaps with fewer or more completions.
  core::Record respecified(const core::Job& job) {
    auto object = std::make_shared<core::JobObject>(job.object());
    Json json = Json::parse(object->json);
    const std::string tier = below(2) ? "a" : "b";
    json["metadata"]["labels"]["tier"] = tier;
    object->meta.labels["tier"] = tier;
    auto completions = static_cast<int32_t>(job.index_count());
    if (!job.finished() && below(3) == 0)
      completions = static_cast<int32_t>(2 + below(kIndexes - 1));
    json["spec"]["completions"] = completions;
    object->spec.completions = completions;
    object->json = json.dump();
    return core::JobSpecChanged{kStart, job.state().generation + 1, job.state().parallelism,
                                completions, object};
  }

  // Some of the pods, in any order, are bound, start and end.
  std::vector<core::Record> moves(const core::Job& job) {
    std::vector<core::Record> records;
    for (const auto& [key, pod] : job.state().open) {
      if (below(3) != 0) continue;
      if (!pod.bound()) {
        records.push_back(core::PodsBound{kStart, {{key, 1}}});
      } else if (!pod.started_at && pod.active()) {
        records.push_back(core::PodsStarted{kStart, {{key, 7, 0, kStart}}});
      } else {
        const bool counts = pod.active() && key.index < job.index_count();
        const bool fails = below(4) == 0;
        auto end = Feeder::end_of(key, fails ? 1 : 0,
                                  pod.counted != core::Counted::not_yet ? core::Counted::not_yet
                                  : !counts                             ? core::Counted::released
                                  : fails                               ? core::Counted::failed
                                                                        : core::Counted::succeeded);
        end.fails_index = fails && end.counted == core::Counted::failed;
        records.push_back(core::PodsEnded{kStart, {end}, 0, 0});
      }
    }
    return records;
  }

  void change_config() {
    const std::string name = "c" + std::to_string(below(3));
    const auto shown = view.kept(core::KeptKind::config_map, "default", name);
    const core::KeptPtr seen = shown ? shown->kept->kept : nullptr;
    if (std::ranges::any_of(pending.kept, [&](const auto& one) { return one.now->name == name; }))
      return;
    if (seen && below(5) == 0) return void(pending.kept.push_back({seen, true}));
    core::Kept map{.kind = core::KeptKind::config_map, .ns = "default", .name = name};
    if (seen) map = *seen;
    Json json = {{"metadata", {{"name", name}, {"namespace", "default"}}},
                 {"data", {{"n", std::to_string(random())}}}};
    if (below(2)) json["metadata"]["labels"]["tier"] = below(2) ? "a" : "b";
    map.json = json.dump();
    if (!seen) map.id = ++last_kept;
    map.version = commit + 1;
    pending.kept.push_back({std::make_shared<const core::Kept>(map), false});
  }

  void begin(Watcher& watcher, uint64_t version) {
    const auto from = view.after(watcher.kind, version);
    ASSERT_TRUE(from);
    watcher.watch = std::make_unique<Watch>(view, watcher.query, *from, false);
  }

  void add_watcher(Kind kind, const std::string& labels, const std::string& fields, Wants wants) {
    Query query{.kind = kind};
    query.labels = Selector::labels(labels).value();
    query.fields = Selector::fields(fields, kind).value();
    const uint64_t from = versions[below(versions.size())];
    watchers.push_back({kind, std::move(query), std::move(wants), from, from, nullptr, {}});
    begin(watchers.back(), from);
  }

  void pull(Watcher& watcher, size_t max) {
    ASSERT_TRUE(watcher.watch->pull(
        [&](std::string_view type, const Shown& shown) {
          ASSERT_GT(shown.version, watcher.last) << "in order, each once";
          watcher.last = shown.version;
          const bool fresh =
              watcher.events[commit_of(shown.version)]
                  .emplace(key_of(shown), Event{std::string(type), object_of(shown), shown.version})
                  .second;
          EXPECT_TRUE(fresh);
        },
        max));
  }

  Events expected(const Watcher& watcher) {
    Events events;
    for (const Committed& change : model) {
      if (change.key.kind != watcher.kind || change.commit <= commit_of(watcher.from)) continue;
      const bool had = !change.before.is_null() && watcher.wants(change.before);
      const bool has = !change.after.is_null() && watcher.wants(change.after);
      if (!had && !has) continue;
      events[change.commit][change.key] = {!has  ? "DELETED"
                                           : had ? "MODIFIED"
                                                 : "ADDED",
                                           has ? change.after : change.before, change.version};
    }
    return events;
  }

  void check(Watcher& watcher) {
    while (watcher.watch->behind()) pull(watcher, 100);
    Events want = expected(watcher);
    for (auto& [at, events] : want)
      for (auto& [key, event] : events)
        if (event.version == 0 && watcher.events[at].contains(key))
          event.version = watcher.events[at][key].version;
    EXPECT_EQ(watcher.events, want);
    EXPECT_GT(watcher.events.size(), 10u);
  }

  View view;
  Renderer renderer{view, [] { return kStart; }};
  std::mt19937_64 random{7};
  std::map<JobId, core::Job> jobs;  // as on disk
  JobId last_job = 0;
  uint64_t last_kept = 0, commit = 0;
  core::Committed pending;
  std::map<Kind, Listed> listed;
  std::vector<Committed> model;
  std::vector<uint64_t> versions;  // of each commit
  std::vector<Watcher> watchers;
};

TEST_F(CommittedHistory, EveryWatcherGetsWhatWasCommitted) {
  watchers.reserve(100);
  for (int round = 0; round < 1000; ++round) {
    for (size_t n = 1 + below(3); n > 0; --n) below(4) == 0 ? change_config() : change_job();
    flush();
    if (round % 80 == 0) {
      add_watcher(Kind::job, "", "", all);
      add_watcher(Kind::job, "tier=a", "", tier_a);
      add_watcher(Kind::job, "", "metadata.name=j3",
                  [](const Json& job) { return job["metadata"]["name"] == "j3"; });
      add_watcher(Kind::job, "", "status.successful=1",
                  [](const Json& job) { return job["status"].value("succeeded", 0) == 1; });
      if (round % 160 == 0) add_watcher(Kind::config_map, "", "", all);
      add_watcher(Kind::config_map, "tier=a", "", tier_a);
    }
    Watcher& one = watchers[below(watchers.size())];
    pull(one, 1 + below(40));
    if (below(3) == 0) begin(one, one.last);  // the connection broke
  }
  for (Watcher& watcher : watchers)
    if (commit_of(watcher.from) < 700) check(watcher);
}

TEST_F(CommittedHistory, ChangeAndRemovalInOneCommitAreBothSent) {
  admit();
  flush();
  add_watcher(Kind::job, "", "", all);
  batch(1, {respecified(jobs.at(1)), core::JobDeleted{kStart, true}});
  batch(2, {core::JobAdmitted{kStart, make_job("k", uid_of(2))}, core::JobDeleted{kStart, true},
            core::JobForgotten{kStart}});
  pending.commit = ++commit;
  view.commit(std::exchange(pending, {}));
  std::vector<std::string> sent;
  uint64_t last = 0;
  watchers[0].watch->pull(
      [&](std::string_view type, const Shown& shown) {
        const Json job = object_of(shown);
        sent.push_back(std::string(type) + " " + job["metadata"]["name"].get<std::string>());
        EXPECT_FALSE(job["metadata"].contains("deletionTimestamp")) << "as it was before";
        EXPECT_GT(shown.version, last);
        last = shown.version;
      },
      100);
  EXPECT_EQ(sent, (std::vector<std::string>{"MODIFIED j1", "DELETED j1", "ADDED k", "DELETED k"}));
}

TEST_F(CommittedHistory, WatcherThatStaysBehindManyBytesIsCut) {
  const auto write = [&](size_t bytes) {
    core::Kept map{.kind = core::KeptKind::config_map, .id = 1, .ns = "default", .name = "c"};
    Json json = {{"metadata", {{"name", "c"}}}, {"data", {{"a", std::string(bytes, 'x')}}}};
    map.json = json.dump();
    map.version = commit + 1;
    pending.kept.push_back({std::make_shared<const core::Kept>(map), false});
    flush();
  };
  write(1);
  const uint64_t begun = view.version();
  add_watcher(Kind::config_map, "", "", all);
  for (int i = 0; i < 40; ++i) write(1 << 20);
  EXPECT_FALSE(view.after(Kind::config_map, begun)) << "410";
  EXPECT_TRUE(view.after(Kind::job, begun)) << "each kind has its own history";
  EXPECT_LE(view.changes(Kind::config_map).bytes(), changes_bytes_max(Kind::config_map));
  EXPECT_FALSE(watchers[0].watch->pull([](std::string_view, const Shown&) {}, 100));
}

TEST_F(CommittedHistory, WhatClientsWriteToPodsIsSentEachTime) {
  admit();
  flush();
  Query query{.kind = Kind::pod};
  query.labels = Selector::labels("queue=fast").value();
  Watch watch(view, query, view.changes(Kind::pod).end(), false);
  const auto relabel = [&](std::optional<std::string> queue) {
    batch(1, {core::PodMetaSet{kStart, {0, 0}, {{true, "queue", std::move(queue)}}}});
    flush();
  };
  relabel("fast");
  relabel("slow");
  relabel("fast");
  batch(1, {core::PodsBound{kStart, {{{0, 0}, 1}}}});
  flush();
  batch(1, {core::PodsStarted{kStart, {{{0, 0}, 7, 0, kStart}}}});
  flush();
  relabel(std::nullopt);
  std::vector<std::string> sent;
  watch.pull(
      [&](std::string_view type, const Shown& shown) {
        sent.push_back(std::string(type) + " " + std::to_string(commit_of(shown.version)));
        object_of(shown);
      },
      100);
  EXPECT_EQ(sent, (std::vector<std::string>{"ADDED 2", "DELETED 3", "ADDED 4", "DELETED 7"}));
}

}  // namespace
}  // namespace muster::api
