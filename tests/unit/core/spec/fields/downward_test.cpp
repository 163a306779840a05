// Variables with node facts and container resources: Kubernetes' rules and rounding.
#include "core/spec/fields/downward.hpp"

#include "core/spec/values/expansion.hpp"

#include <gtest/gtest.h>

#include <set>

namespace muster::core {
namespace {

const NodeFigures kNode{"10.0.0.7", 8000, uint64_t{16} << 30};

EnvVar amount(const std::string& resource, const std::string& divisor = "",
              const std::string& container = "") {
  EnvVar variable{.name = "A"};
  variable.resource = ResourceRef{container, resource, divisor};
  return variable;
}

PodTemplate pod() {
  PodTemplate pod;
  Container main{.name = "main"}, side{.name = "side"}, init{.name = "init"};
  main.resources.limits = {{"cpu", "1500m"}, {"memory", "100M"}};
  main.resources.requests = {{"cpu", "250m"}};
  side.resources.requests = {{"cpu", "2"}, {"memory", "1Gi"}};
  init.resources.limits = {{"cpu", "0"}};
  pod.containers = {main, side};
  pod.init_containers = {init};
  return pod;
}

std::string value(EnvVar variable, const PodTemplate& pod, const NodeFigures& node = kNode) {
  Container container = pod.containers.front();
  container.env = {std::move(variable)};
  put_values(container, pod, node);
  EXPECT_FALSE(container.env[0].resource);
  return container.env[0].value;
}

TEST(Downward, AmountsAreDividedAndRoundedUp) {
  struct Row {
    EnvVar variable;
    std::string value;
  };
  for (const Row& row : std::vector<Row>{
           {amount("limits.cpu"), "2"},
           {amount("limits.cpu", "1m"), "1500"},
           {amount("limits.cpu", "0"), "2"},
           {amount("requests.cpu", "1m"), "250"},
           {amount("requests.cpu"), "1"},
           {amount("limits.memory"), "100000000"},
           {amount("limits.memory", "1Mi"), "96"},  // 95.4
           {amount("limits.memory", "1M"), "100"},
           {amount("limits.memory", "1E"), "1"},
           {amount("requests.memory", "1M"), "100"},  // defaults to the limit
           {amount("limits.cpu", "", "side"), "8"},   // not set: what the node has
           {amount("limits.memory", "1Gi", "side"), "16"},
           {amount("requests.memory", "1Ki", "side"), "1048576"},
           {amount("limits.cpu", "1m", "init"), "8000"},  // 0 is no limit
           {amount("requests.cpu", "", "init"), "0"},
       })
    EXPECT_EQ(value(row.variable, pod()), row.value)
        << row.variable.resource->resource << " / " << row.variable.resource->divisor;
}

TEST(Downward, CoordinatorFillsInFieldsItKnows) {
  PodTemplate some = pod();
  for (const char* field : {"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}) {
    EXPECT_EQ(value({"A", "", field}, some), "10.0.0.7");
    EXPECT_EQ(value({"A", "", field}, some, {}), "");
  }
  EXPECT_EQ(value({"A", "", "spec.serviceAccountName"}, some), "default");
  some.service_account = "a$(B)";
  const std::string text = value({"A", "", "spec.serviceAccountName"}, some);
  EXPECT_EQ(expand(
                text, [](const std::string&) { return std::optional<std::string_view>("x"); }, 99),
            "a$(B)")
      << "it is not expanded";
  Container container{.env = {{"A", "", "spec.nodeName"}, {"B", "$(A)", ""}}};
  const Container before = container;
  put_values(container, some, kNode);
  EXPECT_EQ(container, before) << "the node fills these in";
}

std::multiset<std::string> wrong(const ResourceRef& ref) {
  Violations found;
  validate_resource_ref("v", ref, pod(), found);
  std::multiset<std::string> texts;
  for (const Violation& one : found.list()) texts.insert(one.path + ": " + one.detail);
  return texts;
}

TEST(Downward, ViolationNamesInvalidResourceOrDivisor) {
  for (const char* good : {"", "0", "1", "1m", "1000m"})
    EXPECT_TRUE(wrong({"", "limits.cpu", good}).empty()) << good;
  for (const char* good : {"", "1", "1k", "1Ki", "1Gi", "1E"})
    EXPECT_TRUE(wrong({"side", "requests.memory", good}).empty()) << good;
  EXPECT_EQ(wrong({"", "limits.cpu", "1Mi"}),
            std::multiset<std::string>{
                "v.resourceFieldRef.divisor: only divisor's values 1m and 1 are supported with the "
                "cpu resource"});
  EXPECT_EQ(wrong({"", "limits.memory", "3"}).size(), 1u);
  EXPECT_EQ(wrong({"", "limits.memory", "x"}).size(), 1u);
  EXPECT_EQ(wrong({"nobody", "", ""}).size(), 2u);
  EXPECT_EQ(wrong({"", "limits.ephemeral-storage", ""}).size(), 1u);
}

}  // namespace
}  // namespace muster::core
