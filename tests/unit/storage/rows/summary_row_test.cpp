#include "storage/rows/summary_row.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace muster::storage {
namespace {

// The owners of a job that is not in memory are known without reading the job.
TEST(SummaryRow, HasTheOwners) {
  auto object = std::make_shared<core::JobObject>();
  object->meta.name = "a";
  object->meta.owners = {{"v1", "ConfigMap", "m", "uid-1", true},
                         {"batch/v1", "Job", "b", "uid-2", false}};
  const core::Job job(9, object);
  const Row row = summary_row(job);
  ASSERT_TRUE(row.value);
  const auto summary = decode_summary(9, *row.value);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->owners, object->meta.owners);
}

// A start reads every summary row, so its size is limited.
TEST(SummaryRow, HasNoLongListOfOwners) {
  auto object = std::make_shared<core::JobObject>();
  object->meta.owners.resize(10'000);
  const Row row = summary_row(core::Job(9, object));
  ASSERT_TRUE(row.value);
  EXPECT_LT(row.value->size(), 2'000u);
}

}  // namespace
}  // namespace muster::storage
