// The annotation muster.dev/after: jobs in the same namespace that must end before this one starts
// (docs/decisions/0042-after.md).
//
// "ok:prep,any:clean": `prep` must succeed, and `clean` must end in any way. All entries must hold.
// "each:prep": index i of `prep` must succeed before index i of this job starts.
#pragma once

#include "base/result.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

constexpr std::string_view kAfterKey = "muster.dev/after";
constexpr size_t kAfterMax = 100;  // jobs that one job may wait for

// How another job must end.
enum class Needed : uint8_t {
  ok,     // Complete
  notok,  // Failed, or deleted before it finished
  any,
  each,  // each index of this job waits for the same index of the other; also spelled "corr"
};
std::string_view name(Needed needed);

struct After {
  Needed needed = Needed::ok;
  std::string job;  // its name
  bool operator==(const After&) const = default;
};

// 1 to kAfterMax entries, each job once.
Result<std::vector<After>> parse_after(std::string_view text);
// The annotation's entries; none if it is absent or malformed.
std::vector<After> after_of(const StringMap& annotations);

// Checks that the annotation is well formed and does not name the job itself. Whether the jobs
// exist is checked when the job is created.
void validate_after(const JobMeta& meta, Violations& found);

}  // namespace muster::core
