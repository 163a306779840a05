// ContainerRun: which of a container's processes its log is of.
#include "core/job/shown/container_run.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

Pod running_pod() {
  Pod pod;
  pod.node = 1;
  pod.started_at = 1'000;
  return pod;
}

ContainerNow container_now(ContainerPhase phase, int32_t restarts) {
  return {.phase = phase, .restarts = restarts};
}

TEST(ContainerRun, OfAPodThatRuns) {
  Pod pod;
  EXPECT_EQ(container_run(pod, 0, true), ContainerRun{}) << "not started";
  pod = running_pod();
  EXPECT_EQ(container_run(pod, 0, true), (ContainerRun{.begun = true}));
  pod.readiness = Readiness::not_ready;
  EXPECT_EQ(container_run(pod, 0, true),
            (ContainerRun{.begun = true, .over = true, .previous = 0}));
  struct Row {
    ContainerPhase phase;
    int32_t restarts;
    ContainerRun run;
  };
  for (const Row& row :
       {Row{ContainerPhase::unborn, 0, {}}, Row{ContainerPhase::running, 0, {.begun = true}},
        Row{ContainerPhase::running, 2, {.begun = true, .current = 2, .previous = 1}},
        Row{ContainerPhase::waiting, 2, {.begun = true, .over = true, .current = 2, .previous = 2}},
        Row{ContainerPhase::ended, 0, {.begun = true, .over = true}},
        Row{ContainerPhase::ended,
            1,
            {.begun = true, .over = true, .current = 1, .previous = 0}}}) {
    pod.containers = {container_now(ContainerPhase::ended, 7),
                      container_now(row.phase, row.restarts)};
    EXPECT_EQ(container_run(pod, 1, false), row.run) << static_cast<int>(row.phase);
  }
}

TEST(ContainerRun, OfAPodThatHasEnded) {
  Pod pod = running_pod();
  pod.ended = true;
  pod.restarts = 2;
  EXPECT_EQ(container_run(pod, 0, true),
            (ContainerRun{.begun = true, .over = true, .current = 2, .previous = 1}));
  pod.end.containers = {{.restarts = 1, .started_at = 5}, {}};
  EXPECT_EQ(container_run(pod, 0, false),
            (ContainerRun{.begun = true, .over = true, .current = 1, .previous = 0}));
  EXPECT_EQ(container_run(pod, 1, false), (ContainerRun{.over = true})) << "it never ran";
  pod = {};
  pod.ended = true;
  EXPECT_EQ(container_run(pod, 0, true), (ContainerRun{.over = true}));
}

}  // namespace
}  // namespace muster::core
