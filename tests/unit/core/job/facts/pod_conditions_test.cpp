// When a pod counts as initialized, from what is known of its containers.
#include "core/job/facts/pod_conditions.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::core {
namespace {

constexpr Millis kBound = 1000;

struct PodConditions : testing::Test {
  PodConditions() {
    pod.node = 1;
    pod.bound_ms = kBound;
    pod.started_at = kBound + 10;
    pod.readiness = Readiness::ready;
  }
  // "True at 5", from the time when the pod was bound.
  std::string initialized(const std::vector<Container>& inits) const {
    for (const PodCondition& one : pod_conditions(pod, false, inits))
      if (one.type == std::string("Initialized"))
        return one.status + " at " + std::to_string(one.at_ms - kBound);
    return "";
  }
  static ContainerEnd end(int code, Millis at) {
    return {.exit_code = code, .started_at = kBound, .ended_at = kBound + at};
  }
  const Container init{.name = "init"}, sidecar{.name = "side", .sidecar = true};
  Pod pod;
};

TEST_F(PodConditions, WithoutInitContainersWhenBound) {
  EXPECT_EQ(initialized({}), "True at 0");
}

TEST_F(PodConditions, WhenTheLastInitContainerHasEnded) {
  pod.readiness = Readiness::initializing;
  pod.containers = {{.phase = ContainerPhase::running}, {}};
  EXPECT_EQ(initialized({init}), "False at 0");
  pod.readiness = Readiness::ready;
  pod.containers = {{.phase = ContainerPhase::ended, .last = end(0, 20)}, {}};
  EXPECT_EQ(initialized({init}), "True at 20");
}

TEST_F(PodConditions, WhenTheSidecarHasStarted) {
  pod.readiness = Readiness::initializing;
  pod.containers = {{}, {}};
  EXPECT_EQ(initialized({sidecar}), "False at 0");
  ContainerEnd refused{.cause = EndCause::start_failed, .exit_code = 127};
  pod.containers = {{.phase = ContainerPhase::waiting, .last = refused}, {}};
  EXPECT_EQ(initialized({sidecar}), "False at 0") << "it could not start";
  pod.readiness = Readiness::ready;
  pod.containers = {{.phase = ContainerPhase::running, .since = kBound + 5}, {}};
  EXPECT_EQ(initialized({sidecar}), "True at 5");
  pod.containers[0] = {.phase = ContainerPhase::waiting, .restarts = 1, .last = end(1, 30)};
  EXPECT_EQ(initialized({sidecar}), "True at 0") << "it has run once";
}

TEST_F(PodConditions, StaysWhenTheNodeIsLost) {
  pod.ended = true;
  pod.end = {.cause = EndCause::node_lost, .ended_at = kBound + 50};
  EXPECT_EQ(initialized({init}), "True at 0");
  pod.readiness = Readiness::initializing;
  EXPECT_EQ(initialized({init}), "False at 0");
}

TEST_F(PodConditions, AfterTheEndFromTheEndsOfTheContainers) {
  pod.ended = true;
  pod.end.containers = {end(0, 20), end(1, 40)};
  EXPECT_EQ(initialized({init}), "True at 20");
  pod.end.containers = {end(3, 20), {.cause = EndCause::never_started}};
  EXPECT_EQ(initialized({init}), "False at 0");
  EXPECT_EQ(initialized({sidecar}), "True at 0");
  pod.end.containers[0] = {.cause = EndCause::never_started};
  EXPECT_EQ(initialized({sidecar}), "False at 0") << "it never started";
}

}  // namespace
}  // namespace muster::core
