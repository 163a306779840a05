// The history of jobs as JSON (docs/api.md): entries, and sums of what they used.
#pragma once

#include "base/text/json.hpp"
#include "core/history/report.hpp"

#include <vector>

namespace muster::api {

OrderedJson history_json(const core::HistoryEntry& entry);

// `columns`: what the values in `key` are.
OrderedJson sum_json(const std::vector<core::ReportColumn>& columns,
                     const core::UsageReport::Key& key, const core::UsageSum& sum);

}  // namespace muster::api
