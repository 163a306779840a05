// Node affinity: which nodes match, by Kubernetes' rules.
#include "core/spec/fields/affinity.hpp"

#include <gtest/gtest.h>

#include <set>

namespace muster::core {
namespace {

using Requirement = SelectorRequirement;

const StringMap kLabels = {{"disk", "ssd"}, {"gen", "7"}, {"odd", "x7"}};

NodeAffinity required(std::vector<NodeTerm> terms) {
  return {std::move(terms), {}};
}

TEST(NodeAffinity, RequiredMatchesAnyTermWithAllItsRequirements) {
  struct Row {
    NodeTerm term;
    bool matches;
  };
  for (const Row& row : std::vector<Row>{
           {{}, false},
           {{{{"disk", "In", {"hdd", "ssd"}}}, {}}, true},
           {{{{"disk", "NotIn", {"ssd"}}}, {}}, false},
           {{{{"none", "NotIn", {"ssd"}}}, {}}, true},
           {{{{"disk", "Exists", {}}}, {}}, true},
           {{{{"disk", "DoesNotExist", {}}}, {}}, false},
           {{{{"gen", "Gt", {"6"}}}, {}}, true},
           {{{{"gen", "Gt", {"7"}}}, {}}, false},
           {{{{"gen", "Lt", {"10"}}}, {}}, true},  // as numbers
           {{{{"odd", "Gt", {"1"}}}, {}}, false},
           {{{{"none", "Lt", {"1"}}}, {}}, false},
           {{{{"disk", "Exists", {}}, {"gen", "In", {"6"}}}, {}}, false},
           {{{}, {{"metadata.name", "In", {"n1"}}}}, true},
           {{{}, {{"metadata.name", "NotIn", {"n1"}}}}, false},
           {{{{"disk", "In", {"hdd"}}}, {{"metadata.name", "In", {"n1"}}}}, false},
       })
    EXPECT_EQ(is_required(required({row.term}), "n1", kLabels), row.matches)
        << (row.term.labels.empty() ? "" : row.term.labels[0].op);
  EXPECT_TRUE(is_required({}, "n1", kLabels));
  EXPECT_FALSE(is_required(required({}), "n1", kLabels));
  EXPECT_TRUE(is_required(required({{}, {{{"disk", "Exists", {}}}, {}}}), "n1", kLabels));
}

TEST(NodeAffinity, PreferencesAddUp) {
  const NodeTerm ssd{{{"disk", "In", {"ssd"}}}, {}}, named{{}, {{"metadata.name", "In", {"n2"}}}};
  const NodeAffinity some{{}, {{10, ssd}, {5, named}, {1, {}}}};
  EXPECT_EQ(preference(some, "n1", kLabels), 10);
  EXPECT_EQ(preference(some, "n2", kLabels), 15);
  EXPECT_EQ(preference(some, "n3", {}), 0);
}

TEST(NodeAffinity, ViolationsNameInvalidFields) {
  auto wrong = [](const NodeAffinity& affinity) {
    Violations found;
    validate_node_affinity("a", affinity, found);
    std::multiset<std::string> paths;
    for (const Violation& one : found.list()) paths.insert(one.path);
    return paths;
  };
  const std::string terms = "a.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  const std::string label = terms + "[0].matchExpressions[0]", field = terms + "[0].matchFields[0]";
  auto of_label = [&](Requirement one) { return wrong(required({{{std::move(one)}, {}}})); };
  auto of_field = [&](Requirement one) { return wrong(required({{{}, {std::move(one)}}})); };
  using Paths = std::multiset<std::string>;
  EXPECT_EQ(wrong(required({})), Paths{terms});
  EXPECT_EQ(of_label({"disk", "In", {}}), Paths{label + ".values"});
  EXPECT_EQ(of_label({"disk", "Exists", {"x"}}), Paths{label + ".values"});
  EXPECT_EQ(of_label({"disk", "Gt", {"1", "2"}}), Paths{label + ".values"});
  EXPECT_EQ(of_label({"disk", "Gt", {"x"}}), Paths{label + ".values[0]"});
  EXPECT_EQ(of_label({"disk", "Near", {}}), Paths{label + ".operator"});
  EXPECT_EQ(of_label({"d k", "Exists", {}}), Paths{label + ".key"});
  EXPECT_EQ(of_field({"metadata.name", "In", {"n1"}}), Paths{});
  EXPECT_EQ(of_field({"metadata.name", "In", {"n1", "n2"}}), Paths{field + ".values"});
  EXPECT_EQ(of_field({"metadata.name", "Exists", {}}), Paths{field + ".operator"});
  EXPECT_EQ(of_field({"metadata.uid", "In", {"n1"}}), Paths{field + ".key"});
  EXPECT_EQ(of_field({"metadata.name", "In", {"N_1"}}), Paths{field + ".values[0]"});
  const std::string preferred = "a.preferredDuringSchedulingIgnoredDuringExecution[0]";
  EXPECT_EQ(wrong({{}, {{100, {}}}}), Paths{});
  EXPECT_EQ(wrong({{}, {{101, {{{"d k", "Exists", {}}}, {}}}}}),
            (Paths{preferred + ".weight", preferred + ".preference.matchExpressions[0].key"}));
}

}  // namespace
}  // namespace muster::core
