// What is doubtful in a template, in Kubernetes' words.
#include "api/kube/objects/template_warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::api {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> warnings(const char* pod_spec, const char* metadata = "{}") {
  return template_warnings(
      {{"spec",
        {{"template", {{"metadata", Json::parse(metadata)}, {"spec", Json::parse(pod_spec)}}}}}});
}

TEST(TemplateWarnings, OfVariablesThatHideOthers) {
  EXPECT_THAT(
      warnings(R"({"containers":[{"name":"a","env":[{"name":"A","value":"1"},
                   {"name":"B"},{"name":"A","value":"2"}]}]})"),
      ElementsAre("spec.template.spec.containers[0].env[2]: hides previous definition of \"A\", "
                  "which may be dropped when using apply"));
  EXPECT_THAT(warnings(R"x({"containers":[{"name":"a","env":[{"name":"P","value":"/bin"},
                           {"name":"P","value":"/opt:$(P)"}]}]})x"),
              ElementsAre())
      << "it extends the earlier one";
}

TEST(TemplateWarnings, OfPortsInAllContainers) {
  EXPECT_THAT(
      warnings(R"({"initContainers":[{"name":"i","ports":[{"containerPort":80,"protocol":"TCP"}]}],
                   "containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"TCP"},
                     {"containerPort":80,"protocol":"UDP"}]}]})"),
      ElementsAre("spec.template.spec.containers[0].ports[0]: duplicate port definition with "
                  "spec.template.spec.initContainers[0].ports[0]"));
}

TEST(TemplateWarnings, OfFractionsOfBytesAndDeprecatedWords) {
  EXPECT_THAT(
      warnings(R"({"nodeSelector":{"beta.kubernetes.io/os":"linux"},
                   "imagePullSecrets":[{"name":"x"},{"name":"x"}],
                   "containers":[{"name":"a","resources":{"requests":{"memory":"100m","cpu":"1"}}}]})",
               R"({"annotations":{"security.alpha.kubernetes.io/sysctls":"x"}})"),
      ElementsAre("spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; "
                  "use \"kubernetes.io/os\" instead",
                  "spec.template.metadata.annotations[security.alpha.kubernetes.io/sysctls]: "
                  "non-functional in v1.11+; use the \"sysctls\" field instead",
                  "spec.template.spec.imagePullSecrets[1].name: duplicate name \"x\"",
                  "spec.template.spec.containers[0].resources.requests[memory]: fractional byte "
                  "value \"100m\" is invalid, must be an integer"));
}

TEST(TemplateWarnings, OfPrivilegesThatAProcessDoesNotGet) {
  EXPECT_THAT(warnings(R"({"containers":[{"name":"a","securityContext":{"privileged":true}},
                           {"name":"b","securityContext":{"privileged":false}}]})"),
              ElementsAre("spec.template.spec.containers[0].securityContext.privileged: has no "
                          "effect, the process has the privileges of its user"));
}

}  // namespace
}  // namespace muster::api
