// What a pod's status shows in each phase, as the table in docs/pod-status.md.
// MUSTER_GOLDEN_WRITE=1 rewrites it.
#include "api/view/render/render.hpp"
#include "api/view/render/tables.hpp"
#include "tests/unit/api/view/view_fixture.hpp"
#include "tests/unit/checked_in.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;
using core::ContainerEnd;
using core::ContainerNow;
using core::ContainerPhase;

constexpr Millis kSeen = kStart + 3'000;

core::JobObjectPtr job_of_four() {
  auto parsed = parse_job(
      R"({"metadata":{"name":"j"},"spec":{"completionMode":"Indexed","completions":20,
          "parallelism":20,"template":{"spec":{"restartPolicy":"OnFailure",
          "initContainers":[{"name":"a","command":["true"]},{"name":"b","command":["true"]}],
          "containers":[{"name":"c","command":["true"]},{"name":"d","command":["true"]}]}}}})",
      FieldValidation::strict);
  MUSTER_CHECK(parsed.ok(), parsed.error().message);
  auto job = admit_job(std::move(*parsed), {"default", uid_of(1), kStart, "bcdfg"});
  MUSTER_CHECK(job.ok(), job.error().message);
  return *job;
}

ContainerEnd exit_of(int code) {
  return {.exit_code = code, .started_at = kStart + 1000, .ended_at = kStart + 2000};
}
ContainerNow unborn() {
  return {};
}
ContainerNow running(int32_t restarts = 0) {
  ContainerNow now{.phase = ContainerPhase::running, .since = kStart + 1000, .restarts = restarts};
  if (restarts > 0) now.last = exit_of(3);
  return now;
}
ContainerNow waiting() {
  return {.phase = ContainerPhase::waiting, .restarts = 1, .last = exit_of(3)};
}
ContainerNow over(int code) {
  return {.phase = ContainerPhase::ended, .last = exit_of(code)};
}

class PodStatus : public ::testing::Test {
 protected:
  PodStatus() {
    feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
    feed.admit(1, job_of_four());
    feed.create(1, 0, 20);
  }

  // The row of a pod with these containers.
  void runs(const std::string& what, std::vector<ContainerNow> containers,
            core::Readiness readiness) {
    feed.bind(1, {index, 0});
    int32_t restarts = 0;
    for (const ContainerNow& one : containers) restarts += one.restarts;
    if (!containers.empty())
      feed.records(
          1, {core::PodsStarted{
                 kStart + 1000,
                 {{{index, 0}, 7, restarts, kStart + 1000, readiness, std::move(containers)}}}});
    row(what);
  }

  void ended(const std::string& what, const std::vector<int>& codes) {
    feed.bind(1, {index, 0});
    auto end = Feeder::end_of({index, 0}, codes.back(),
                              codes.back() == 0 ? core::Counted::succeeded : core::Counted::failed);
    for (const int code : codes) {
      end.end.containers.push_back(exit_of(code));
      if (end.end.exit_code == 0) end.end.exit_code = code;
    }
    while (end.end.containers.size() < 4)
      end.end.containers.push_back({.cause = core::EndCause::never_started});
    if (end.end.exit_code != 0) end.counted = core::Counted::failed;
    end.start = {7, kStart + 1000};
    feed.records(1, {core::PodsEnded{kStart + 3000, {end}, 0, 0}});
    row(what);
  }

  void row(const std::string& what) {
    const auto shown = view.find({Kind::pod, 1, 0, {index++, 0}});
    ASSERT_TRUE(shown) << what;
    Renderer renderer(view, [] { return kSeen; });
    std::string text;
    renderer.object(text, *shown);
    const Json status = Json::parse(text)["status"];
    const OrderedJson cells = table_cells(view, *shown, kSeen);
    std::string line = "| " + what + " | " + status["phase"].get<std::string>() + " | " +
                       cells[2].get<std::string>() + " | " + cells[1].get<std::string>() + " | ";
    for (const char* type : {"Initialized", "Ready"}) {
      std::string said = "–";
      for (const Json& condition : status["conditions"])
        if (condition["type"] == type) said = condition["status"];
      line += said + " | ";
    }
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
      if (!status.contains(list)) line += "– | – | ";
      if (status.contains(list))
        for (const Json& one : status[list]) line += state(one) + " | ";
    }
    line.pop_back();
    table += line + "\n";
  }

  // "waiting CrashLoopBackOff (was Error 3, restarts 1)"
  static std::string state(const Json& container) {
    std::string text;
    for (const auto& [name, value] : container["state"].items()) {
      text = name;
      if (value.contains("reason")) text += " " + value["reason"].get<std::string>();
      if (value.contains("exitCode")) text += " " + value["exitCode"].dump();
    }
    if (container["lastState"].empty()) return text;
    const Json& last = container["lastState"]["terminated"];
    return text + " (was " + last["reason"].get<std::string>() + " " + last["exitCode"].dump() +
           ", restarts " + container["restartCount"].dump() + ")";
  }

  View view;
  Feeder feed{view};
  uint32_t index = 0;
  std::string table;
};

TEST_F(PodStatus, IsTrueToEachPhase) {
  using core::Readiness;
  row("it has no node");
  runs("it has a node", {}, Readiness::initializing);
  runs("the first init container runs", {running(), unborn(), unborn(), unborn()},
       Readiness::initializing);
  runs("it failed and waits to be restarted", {waiting(), unborn(), unborn(), unborn()},
       Readiness::initializing);
  runs("the second one runs", {over(0), running(), unborn(), unborn()}, Readiness::initializing);
  runs("both containers run", {over(0), over(0), running(), running()}, Readiness::ready);
  runs("one has been restarted", {over(0), over(0), running(1), running()}, Readiness::ready);
  runs("one waits to be restarted", {over(0), over(0), running(), waiting()}, Readiness::not_ready);
  runs("one has succeeded", {over(0), over(0), over(0), running()}, Readiness::not_ready);
  ended("all have succeeded", {0, 0, 0, 0});
  ended("a container failed for good", {0, 0, 5, 0});
  ended("an init container failed for good", {0, 5});
  expect_checked_in(
      "docs/pod-status.md",
      "# What a pod shows in each phase\n\n"
      "A pod of two init containers, `a` and `b`, and two containers, `c` and `d`. STATUS and "
      "READY "
      "are columns of\n`kubectl get pods`; Initialized and Ready are conditions. This page is "
      "written by a test.\n\n"
      "| when | phase | STATUS | READY | Initialized | Ready | a | b | c | d |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n" +
          table);
}

// A pod of one container keeps no list: its own state says all.
TEST_F(PodStatus, OfOneContainerIsItsOwn) {
  feed.admit(2, make_job("one", uid_of(2)));
  feed.create(2, 0, 1);
  feed.bind(2, {0, 0});
  feed.start(2, {0, 0});
  const auto container = [&] {
    Renderer renderer(view, [] { return kSeen; });
    std::string text;
    renderer.object(text, *view.find({Kind::pod, 2, 0, {0, 0}}));
    return Json::parse(text)["status"]["containerStatuses"][0];
  };
  EXPECT_TRUE(container()["state"].contains("running"));
  EXPECT_EQ(container()["started"], true);
  feed.end(2, {0, 0}, 4, core::Counted::failed);
  EXPECT_EQ(container()["state"]["terminated"]["exitCode"], 4);
  EXPECT_EQ(container()["started"], false);
}

// Once it has waited for a second.
TEST_F(PodStatus, SaysWhyItHasNoNode) {
  Renderer early(view, [] { return kStart + 500; }), later(view, [] { return kSeen; });
  const auto message = [&](Renderer& renderer) {
    std::string text;
    renderer.object(text, *view.find({Kind::pod, 1, 0, {0, 0}}));
    const Json status = Json::parse(text)["status"];
    for (const Json& one : status["conditions"])
      if (one["type"] == "PodScheduled") return one["message"].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(message(early), "waiting for a free slot");
  EXPECT_EQ(message(later), "waiting for a free slot") << "there is one";
  for (uint32_t i = 0; i < 4; ++i) feed.bind(1, {i + 1, 0});
  Renderer full(view, [] { return kSeen; });
  EXPECT_EQ(message(full), "0/1 nodes are available: 1 Too many pods.");
}

}  // namespace
}  // namespace muster::api
