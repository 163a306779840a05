// The values that a node may register with.
#include "core/cluster/nodes/node_rules.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace muster::core {
namespace {

TEST(P08Node, WithInvalidNameLabelsOrResourcesIsRefused) {
  const NodeInfo fine{.name = "n-1.example", .work_dir_id = "w", .boot_id = "b", .slots = 1};
  EXPECT_EQ(node_error(fine), "");
  const std::pair<std::function<void(NodeInfo&)>, const char*> rows[] = {
      {[](NodeInfo& n) { n.name = ""; }, "the node name"},
      {[](NodeInfo& n) { n.name = "N1"; }, "the node name"},
      {[](NodeInfo& n) { n.name = "a\nb"; }, "the node name"},
      {[](NodeInfo& n) { n.name = std::string(254, 'a'); }, "the node name"},
      {[](NodeInfo& n) { n.name = std::string(1 << 20, 'a'); }, "the node name"},
      {[](NodeInfo& n) { n.work_dir_id = ""; }, "the work-dir id"},
      {[](NodeInfo& n) { n.work_dir_id = std::string(129, 'a'); }, "the work-dir id"},
      {[](NodeInfo& n) { n.boot_id = "b\x1b[A"; }, "the boot id"},
      {[](NodeInfo& n) { n.secret = std::string(129, 'a'); }, "the secret"},
      {[](NodeInfo& n) { n.address = "h\n"; }, "the address"},
      {[](NodeInfo& n) { n.slots = kNodeSlotsMax + 1; }, "it has 1000001 slots"},
      {[](NodeInfo& n) { n.labels["a b"] = ""; }, "the label"},
      {[](NodeInfo& n) { n.labels["a"] = std::string(64, 'x'); }, "the label"},
      {[](NodeInfo& n) { n.resources["gpu\n"] = 1; }, "the resource"},
      {[](NodeInfo& n) {
         for (size_t i = 0; i <= kNodeLabelsMax; ++i) n.labels["l" + std::to_string(i)] = "";
       },
       "it has 1001 labels"},
  };
  for (const auto& [edit, error] : rows) {
    NodeInfo node = fine;
    edit(node);
    EXPECT_EQ(node_error(node).find(error), 0u) << error << " <> " << node_error(node);
    EXPECT_LT(node_error(node).size(), 500u);
  }
}

}  // namespace
}  // namespace muster::core
