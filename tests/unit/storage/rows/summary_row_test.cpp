#include "storage/rows/summary_row.hpp"

#include "storage/journal/keys.hpp"

#include <gtest/gtest.h>

#include <map>
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

class Table final : public Rows {
 public:
  Result<std::optional<std::string>> get(std::string_view key) override {
    const auto found = rows.find(std::string(key));
    return found == rows.end() ? std::nullopt : std::optional(found->second);
  }
  Status walk(std::string_view, std::string_view, const Walk&) override { return Nothing{}; }
  std::map<std::string, std::string> rows;
};

// A list shows users their own jobs, also those that are not in memory.
TEST(SummaryRow, SaysWhoseTheJobIs) {
  auto object = std::make_shared<core::JobObject>();
  object->meta.name = "a";
  const core::StringMap owner = {{"muster.dev/owner", "ada"}, {"muster.dev/owner-uid", "1001"}};
  object->meta.annotations = owner;
  object->meta.annotations.emplace("muster.dev/indexes", "1-5");
  object->meta.annotations.emplace("muster.dev/owner-groups", std::string(100'000, '1'));
  Table table;
  const Row row = summary_row(core::Job(9, object));
  table.rows[row.key] = *row.value;
  table.rows[keys::owner(9)] = "{}";
  core::StringMap shown = owner;
  shown.emplace("muster.dev/indexes", "1-5");
  const auto job = brief_job(table, 9);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->object().meta.annotations, shown);
  EXPECT_LT(row.value->size(), 2'000u);
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
