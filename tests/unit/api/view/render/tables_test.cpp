// The tables that `kubectl get` prints, including wide columns, as text in tests/golden/tables/.
// MUSTER_GOLDEN_WRITE=1 rewrites them.
#include "api/view/render/tables.hpp"

#include "tests/unit/api/view/view_fixture.hpp"
#include "tests/unit/checked_in.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;

constexpr Millis kNow = kStart + 95'000;

std::string cell(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Columns as wide as needed; `*` marks those that only `-o wide` shows.
std::string table(const View& view, Kind kind) {
  std::vector<std::vector<std::string>> rows(1);
  for (const OrderedJson& column : table_columns(kind))
    rows[0].push_back(column["name"].get<std::string>() + (column["priority"] == 0 ? "" : "*"));
  view.each(
      kind, "", [](const core::Job&) { return true; },
      [&](const Shown& shown) {
        auto& row = rows.emplace_back();
        for (const OrderedJson& value : table_cells(view, shown, kNow)) row.push_back(cell(value));
      });
  std::string text;
  for (const auto& row : rows) {
    EXPECT_EQ(row.size(), rows[0].size());
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      size_t width = 0;
      for (const auto& other : rows) width = std::max(width, other[i].size());
      line += row[i] + std::string(width - row[i].size() + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

void expect_golden(const std::string& name, const std::string& text) {
  expect_checked_in("tests/golden/tables/" + name + ".txt", text);
}

class Tables : public ::testing::Test {
 protected:
  Tables() {
    feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
    auto cordoned = make_node(2, "n2", core::NodeInfo::Health::ready);
    cordoned.spec.unschedulable = true;
    cordoned.address = "10.0.0.2";
    cordoned.agent_version = "0.2.0";
    cordoned.keeper_version = "0.1.0";
    cordoned.spec.taints = {{"course", "hpc1", "NoSchedule"}};
    cordoned.spec.reasons = {{"cordon", "olga", kStart, "replace DIMM"}};
    feed.node(cordoned);
    feed.node(make_node(3, "n3", core::NodeInfo::Health::lost));
    auto leaving = make_node(4, "n4", core::NodeInfo::Health::ready);
    leaving.draining = true;
    feed.node(leaving);
    auto troubled = make_node(5, "n5", core::NodeInfo::Health::ready);
    troubled.trouble = {"KeeperNotResponding", "it is silent"};
    feed.node(troubled);
    auto left = make_node(6, "n6", core::NodeInfo::Health::suspect);
    left.draining = true;
    left.changed_ms = kStart;
    feed.node(left);
    auto left_before = make_node(7, "n7", core::NodeInfo::Health::unknown);
    left_before.left_ms = kStart - 3'600'000;  // before the coordinator started
    left_before.ip = "10.0.0.7";
    feed.node(left_before);
    feed.admit(1, make_job("mixed", uid_of(1), 6));
    feed.records(1, {core::JobStarted{kStart}});
    feed.create(1, 0, 6);
    for (uint32_t index : {0, 1, 2, 3, 4}) feed.bind(1, {index, 0}, index % 2 + 1);
    for (uint32_t index : {0, 1, 2, 3}) feed.start(1, {index, 0});
    feed.end(1, {0, 0}, 0);
    feed.end(1, {1, 0}, 7, core::Counted::failed);
    auto killed = Feeder::end_of({2, 0}, 137, core::Counted::failed);
    killed.end.cause = core::EndCause::out_of_memory;
    feed.records(1, {core::PodsEnded{kStart + 3000, {killed}, 0, 0}});
    feed.admit(2, make_job("paused", uid_of(2), 4, R"(,"suspend":true)", "blue"));
    feed.records(2, {core::JobSuspended{kStart, true}});
    feed.admit(3, make_job("done", uid_of(3), 1));
    feed.records(3, {core::JobStarted{kStart}});
    feed.create(3, 0, 1);
    feed.bind(3, {0, 0});
    feed.start(3, {0, 0});
    feed.end(3, {0, 0}, 0);
    feed.records(
        3, {core::FinishDecided{kStart + 3000, true, core::ConditionReason::completions_reached,
                                "Reached expected number of succeeded pods"},
            core::JobFinished{kStart + 4000}});
    feed.admit(4, make_job("broken", uid_of(4), 2));
    feed.records(4, {core::JobStarted{kStart}});
    feed.records(
        4, {core::FinishDecided{kStart + 5000, false, core::ConditionReason::backoff_limit_exceeded,
                                "Job has reached the specified backoff limit"},
            core::JobFinished{kStart + 6000}});
    feed.admit(5, make_job("waiting", uid_of(5), 3));
    feed.records(5, {core::JobHeld{kStart + 60'000, "olga", true, "maintenance"}});
  }
  View view;
  Feeder feed{view};
};

TEST_F(Tables, Jobs) {
  expect_golden("jobs", table(view, Kind::job));
}
TEST_F(Tables, Pods) {
  expect_golden("pods", table(view, Kind::pod));
}
TEST_F(Tables, Nodes) {
  expect_golden("nodes", table(view, Kind::node));
}
TEST_F(Tables, Events) {
  expect_golden("events", table(view, Kind::event));
}

TEST(Spans, AreWrittenAsKubectlWritesThem) {
  const std::pair<int64_t, const char*> rows[] = {{-5, "0s"},
                                                  {0, "0s"},
                                                  {119, "119s"},
                                                  {120, "2m"},
                                                  {125, "2m5s"},
                                                  {600, "10m"},
                                                  {3 * 3600 - 1, "179m"},
                                                  {3 * 3600, "3h"},
                                                  {3 * 3600 + 60, "3h1m"},
                                                  {8 * 3600, "8h"},
                                                  {48 * 3600, "2d"},
                                                  {49 * 3600, "2d1h"},
                                                  {8 * 86400, "8d"},
                                                  {2 * 365 * 86400, "2y"},
                                                  {800 * 86400, "2y70d"}};
  for (const auto& [seconds, text] : rows) EXPECT_EQ(span_text(seconds * 1000), text) << seconds;
}

}  // namespace
}  // namespace muster::api
